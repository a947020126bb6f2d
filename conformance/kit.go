package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// kit is what checks work with: one endpoint, asked as one caller. Its methods are safe for
// concurrent use.
type kit struct {
	endpoint *url.URL
	region   string
	live     bool // AWS itself: patient, gentle and careful
	slow     bool // --slow
	wait     time.Duration
	prefix   string

	credentials aws.CredentialsProvider
	http        *http.Client
	sdk         *kinesis.Client

	creating chan struct{} // a token for each stream that is being created
	turn     chan struct{} // the token of who changes the settings stream
	joining  chan struct{} // a token for each consumer that is being registered
	// life ends with the run; scenes outlive the fact that came first.
	life context.Context //nolint:containedctx // scenes are shared by facts, so none owns them

	mu      sync.Mutex
	scenes  map[string]*memo
	created []string // streams to delete at the end
}

// maxCreating is how many streams are created at once; AWS allows five in CREATING
// (API reference, CreateStream).
const maxCreating = 4

// target is where a kit works.
type target struct {
	endpoint    *url.URL
	region      string
	credentials aws.CredentialsProvider
	live        bool
	slow        bool
	wait        time.Duration // for a state that must come; default: 30 s, on AWS 10 minutes
	prefix      string        // of all names; default: one that no other run has
	client      *http.Client
}

func newKit(life context.Context, t target) *kit {
	if t.prefix == "" {
		t.prefix = newPrefix()
	}
	client := t.client
	if client == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = workers
		// The answers' own encoding is part of what is checked.
		transport.DisableCompression = true
		client = &http.Client{Transport: transport}
	}
	k := &kit{
		endpoint: t.endpoint, region: t.region, live: t.live, slow: t.slow, wait: t.wait,
		prefix:      t.prefix,
		credentials: t.credentials, http: client,
		creating: make(chan struct{}, maxCreating), turn: make(chan struct{}, 1),
		joining: make(chan struct{}, maxCreating), life: life, scenes: map[string]*memo{},
	}
	k.sdk = kinesis.New(kinesis.Options{
		BaseEndpoint: aws.String(t.endpoint.String()), Region: t.region,
		Credentials: t.credentials, HTTPClient: client,
	})
	return k
}

// name is a name of this run.
func (k *kit) name(of string) string { return k.prefix + of }

// poll is how often a state is looked at, and patience how long in all.
func (k *kit) poll() time.Duration {
	if k.live {
		return time.Second
	}
	return 10 * time.Millisecond
}

func (k *kit) patience() time.Duration {
	switch {
	case k.wait > 0:
		return k.wait
	case k.live:
		return 10 * time.Minute
	}
	return 30 * time.Second
}

// cannot says why a fact with such needs cannot be asked for here, "" if it can.
func (k *kit) cannot(n need) string {
	switch {
	case n&patience != 0 && !k.slow:
		return "takes minutes: ask with --slow"
	case n&freeBilling != 0 && k.live:
		return "would change what the account pays"
	case n&signatures != 0 && !k.checksSignatures():
		return "the endpoint checks no signatures"
	}
	return ""
}

// checksSignatures says whether the endpoint refuses a request that a wrong secret signed.
func (k *kit) checksSignatures() bool {
	k.mu.Lock()
	m := k.memo("signatures are checked")
	k.mu.Unlock()
	m.once.Do(func() {
		r := jsonRequest("ListStreams", object{})
		r.signer = wrongSecret
		a, err := k.send(k.life, r)
		m.value = err == nil && a.status >= 400
	})
	checked, _ := m.value.(bool)
	return checked
}

// memo is a value that is made once, by whoever wants it first.
type memo struct {
	once    sync.Once
	value   any
	failure any // what its making panicked with, for all who want it
}

// memo returns the memo of that name; the lock is held.
func (k *kit) memo(name string) *memo {
	m := k.scenes[name]
	if m == nil {
		m = &memo{}
		k.scenes[name] = m
	}
	return m
}

// stage returns a scene, which is built once. If building found fault, every fact of it does.
func stage[T any](c *check, name string, build func(c *check) T) T {
	c.mu.Lock()
	m := c.memo(name)
	c.mu.Unlock()
	m.once.Do(func() {
		defer func() { m.failure = recover() }()
		m.value = build(&check{kit: c.kit, ctx: c.life})
	})
	if m.failure != nil {
		panic(m.failure)
	}
	scene, ok := m.value.(T)
	if !ok {
		panic(fmt.Sprintf("scene %s is not what it was", name))
	}
	return scene
}

// pause waits, or ends the check with the run.
func (c *check) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.ctx.Done():
		panic(skipped{"interrupted"})
	}
}

// eventually asks until the answer is yes.
func (c *check) eventually(what string, yes func() bool) {
	deadline := time.Now().Add(c.patience())
	for !yes() {
		c.want(time.Now().Before(deadline), what, "not within "+c.patience().String())
		c.pause(c.poll())
	}
}

// isThrottled says whether a call is only to be made again: a rate of the account, not a fact.
func isThrottled(a *answer) bool {
	switch a.code() {
	case "LimitExceededException", "ProvisionedThroughputExceededException":
		return strings.HasPrefix(a.message(), "Rate exceeded")
	case "ThrottlingException":
		return true
	}
	return false
}
