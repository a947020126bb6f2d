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

// kit asks one endpoint on behalf of one caller, for all checks. Its methods are safe for
// concurrent use.
type kit struct {
	endpoint *url.URL
	region   string
	live     bool // the endpoint is AWS: long waits, few calls at a time, no billing changes
	slow     bool // --slow
	wait     time.Duration
	prefix   string

	credentials aws.CredentialsProvider
	http        *http.Client
	sdk         *kinesis.Client

	creating chan struct{} // one token for each stream in CREATING
	turn     chan struct{} // one token: the right to change the settings stream
	joining  chan struct{} // one token for each consumer in CREATING
	// life ends with the run. Scenes use it, since a scene outlives the fact that built it.
	life context.Context //nolint:containedctx // scenes are shared by facts, so none owns them

	mu      sync.Mutex
	scenes  map[string]*memo
	created []string // streams to delete at the end
}

// maxCreating is how many streams are created at once; AWS allows five in CREATING
// (API reference, CreateStream).
const maxCreating = 4

// target is the endpoint of a kit, with its settings.
type target struct {
	endpoint    *url.URL
	region      string
	credentials aws.CredentialsProvider
	live        bool
	slow        bool
	wait        time.Duration // longest wait for a state; default: 30 s, on AWS 10 minutes
	prefix      string        // of all names; default: a random one
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
		// Facts check the encoding of answers, so the transport must not change it.
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

// name returns a stream name with this run's prefix.
func (k *kit) name(of string) string { return k.prefix + of }

// poll is the pause between two looks at a state; patience bounds the whole wait.
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

// cannot returns the reason for skipping a fact with these needs, or "".
func (k *kit) cannot(n need) string {
	switch {
	case n&patience != 0 && !k.slow:
		return "takes minutes: ask with --slow"
	case n&freeBilling != 0 && k.live:
		return "would change the account's bill"
	case n&signatures != 0 && !k.checksSignatures():
		return "the endpoint checks no signatures"
	}
	return ""
}

// checksSignatures reports whether the endpoint refuses a request signed with a wrong secret.
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

// memo is a value that is built once, at its first use.
type memo struct {
	once    sync.Once
	value   any
	failure any // the panic value of the build, which every use repeats
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

// stage returns a scene and builds it at its first use. If an assertion fails in the build, all
// facts of the scene fail with it.
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
		panic(fmt.Sprintf("scene %s has two types", name))
	}
	return scene
}

// pause waits. It ends the check if the run ends meanwhile.
func (c *check) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.ctx.Done():
		panic(skipped{"interrupted"})
	}
}

// eventually calls yes until it returns true. The check fails after patience.
func (c *check) eventually(what string, yes func() bool) {
	deadline := time.Now().Add(c.patience())
	for !yes() {
		c.want(time.Now().Before(deadline), what, "not within "+c.patience().String())
		c.pause(c.poll())
	}
}

// isThrottled reports whether a call exceeded a rate of the account. Such a call is repeated.
func isThrottled(a *answer) bool {
	switch a.code() {
	case "LimitExceededException", "ProvisionedThroughputExceededException":
		return strings.HasPrefix(a.message(), "Rate exceeded")
	case "ThrottlingException":
		return true
	}
	return false
}
