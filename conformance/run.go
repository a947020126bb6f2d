package main

import (
	"context"
	"regexp"
	"slices"
	"sync"
)

// workers bounds the facts asked at once. On AWS it is liveWorkers, since AWS's control plane
// takes five calls a second.
const (
	workers     = 16
	liveWorkers = 4
)

// chosen returns the facts with ids that match only and not skip. skip may be nil.
func chosen(only, skip *regexp.Regexp) []fact {
	return slices.DeleteFunc(facts(), func(f fact) bool {
		return !only.MatchString(f.id) || (skip != nil && skip.MatchString(f.id))
	})
}

// run checks the facts and returns their results in the order of the facts. It calls each with
// every result as it comes, from one goroutine at a time. Once the context has ended, the
// remaining facts are skipped, without a call of each.
func (k *kit) run(ctx context.Context, facts []fact, each func(result)) []result {
	results := make([]result, len(facts))
	todo := make(chan int)
	var reporting sync.Mutex
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
				reporting.Lock()
				each(results[i])
				reporting.Unlock()
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

// longestFirst returns the indexes of the facts, those that take minutes first. The other workers
// do the rest meanwhile.
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
