package main

import (
	"context"
	"regexp"
	"slices"
	"sync"
)

// workers is how many facts are asked at once; liveWorkers on AWS, whose control plane takes
// five calls a second.
const (
	workers     = 16
	liveWorkers = 4
)

// chosen returns the facts whose ids match the one and not the other, which may be nil.
func chosen(only, skip *regexp.Regexp) []fact {
	return slices.DeleteFunc(facts(), func(f fact) bool {
		return !only.MatchString(f.id) || (skip != nil && skip.MatchString(f.id))
	})
}

// run asks for the facts and returns their results in the order of the facts. each gets every
// result as it comes, from one goroutine at a time. When the context ends, the facts that were not
// asked for are skipped.
func (k *kit) run(ctx context.Context, facts []fact, each func(result)) []result {
	results := make([]result, len(facts))
	todo := make(chan int)
	var telling sync.Mutex
	var working sync.WaitGroup
	for range k.workers() {
		working.Go(func() {
			for i := range todo {
				if ctx.Err() != nil {
					results[i] = result{
						fact: facts[i], outcome: outcomeSkipped,
						reason: "interrupted",
					}
					continue
				}
				results[i] = facts[i].run(ctx, k)
				telling.Lock()
				each(results[i])
				telling.Unlock()
			}
		})
	}
	for _, i := range longestFirst(facts) {
		todo <- i
	}
	close(todo)
	working.Wait()
	return results
}

func (k *kit) workers() int {
	if k.live {
		return liveWorkers
	}
	return workers
}

// longestFirst is an order of the facts in which those that take minutes come first, so that
// the others are done meanwhile.
func longestFirst(facts []fact) []int {
	var patient, others []int
	for i, f := range facts {
		if f.needs&patience != 0 {
			patient = append(patient, i)
		} else {
			others = append(others, i)
		}
	}
	return append(patient, others...)
}
