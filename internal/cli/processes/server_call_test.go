package processes_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/smithy-go"
)

// outcome is the result of a call, as far as the client knows it.
type outcome int

const (
	done       outcome = iota // answered: it has happened
	refused                   // answered: it has not
	unsent                    // there was no server to send it to
	unanswered                // it may have happened
)

// call makes a call and returns its outcome. The code of a refusal must be one of codes.
func (r *serverRun) call(what string, codes []string, f func(context.Context) error) outcome {
	ctx, cancel := context.WithTimeout(r.ctx, time.Minute)
	defer cancel()
	err := f(ctx)
	var api smithy.APIError
	var network *net.OpError
	switch {
	case err == nil:
		return done
	case errors.As(err, &api):
		if !slices.Contains(codes, api.ErrorCode()) {
			r.t.Errorf("%s: %v", what, err)
		}
		return refused
	case errors.As(err, &network) && network.Op == "dial":
		return unsent
	default:
		return unanswered
	}
}

// ask makes a call that must be answered, with success: the server is up.
func (r *serverRun) ask(what string, f func(context.Context) error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, time.Minute)
	defer cancel()
	if err := f(ctx); err != nil {
		r.t.Fatalf("%s: %v", what, err)
	}
}

// ended reports whether the process is over.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// ownAddress finds a free port below those that systems choose for a program that asks for any
// (from 32768 on, or higher), so that no other program has it when the server comes back.
func ownAddress(t *testing.T) string {
	for range 100 {
		address := fmt.Sprint("127.0.0.1:", 20_000+rand.IntN(12_000))
		if listener, err := net.Listen("tcp", address); err == nil {
			_ = listener.Close()
			return address
		}
	}
	t.Fatal("no port is free from 20000 to 32000")
	return ""
}

// gate lets clients pass, or wait. The zero gate is open.
type gate struct {
	mu     sync.Mutex
	closed chan struct{} // nil: it is open
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == nil {
		g.closed = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed != nil {
		close(g.closed)
		g.closed = nil
	}
}

// pass waits until the gate is open. It reports false if ctx has ended.
func (g *gate) pass(ctx context.Context) bool {
	g.mu.Lock()
	closed := g.closed
	g.mu.Unlock()
	if closed != nil {
		select {
		case <-closed:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

func hashOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}
