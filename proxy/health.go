package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	probeTimeout = 500 * time.Millisecond // below the second that probes of containers wait
	probeEvery   = time.Second            // at most, whatever asks for /health
	probeText    = 200                    // bytes of upstream's reason
)

// health answers 200 "ok" while the proxy takes calls, and 503 with the reason otherwise. If
// upstream does not answer, a second line says so, and the status stays 200: the proxy takes
// records during an outage, and a supervisor that restarted it would cut off their clients, which
// would put the records again.
func (p *Proxy) health(w http.ResponseWriter, r *http.Request) {
	var fault string
	if !p.isEnding() {
		fault = p.probe.fault(r.Context(), p.upstream)
	}
	p.allow(w)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case p.isEnding():
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "shutting down\n")
	case fault != "":
		_, _ = io.WriteString(w, "ok\n"+fault+"; puts wait until it does\n")
	default:
		_, _ = io.WriteString(w, "ok\n")
	}
}

// probe asks upstream for a sign of life. Its zero value is ready.
type probe struct {
	mu sync.Mutex // held during the question, so that one is under way at a time
	at time.Time  // of the last answer
	is string     // the last fault
}

// fault returns why upstream serves no calls, or "" if it does, from at most a second ago.
func (b *probe) fault(ctx context.Context, u *upstream) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at.IsZero() || time.Since(b.at) >= probeEvery {
		b.is = u.fault(context.WithoutCancel(ctx)) // others get this answer too
		b.at = time.Now()
	}
	return b.is
}

// fault asks upstream, without a key. Any answer shows that upstream serves calls, also a refusal,
// as of AWS; but 503 does not, with which runnel's server has a reason.
func (u *upstream) fault(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.url+"/health", nil)
	if err != nil {
		return firstLine(u.url + " does not answer: " + err.Error())
	}
	answer, err := u.client.Do(request)
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err // without the URL
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Sprintf("%s does not answer within %v", u.url, probeTimeout)
	case err != nil:
		return firstLine(u.url + " does not answer: " + err.Error())
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, probeText))
	if answer.StatusCode != http.StatusServiceUnavailable {
		return ""
	}
	if err != nil {
		text = nil // the status says enough
	}
	return firstLine(fmt.Sprintf("%s does not serve calls, by its /health: %s", u.url, text))
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
