// Package origin keeps the pages of other machines away from a server on this one.
//
// A browser calls for every page that its user opens, and it reaches servers that only this machine
// reaches. It hides most answers from the page. But a page can give its own host name the address
// of this machine ("DNS rebinding"). Then the browser takes the server for the page's own, and
// shows it everything.
//
// A browser names the page, in three headers that no page can change: Origin, with every call that
// may have an effect; Host; and Sec-Fetch-Site (Fetch Standard; W3C Fetch Metadata). Other clients
// send no Origin, and are served as before.
package origin

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Guard decides which pages may call. The pages of this machine always may: those of localhost, of
// its subdomains, and of loopback addresses. The zero value lets no others call. It is safe for
// concurrent use.
type Guard struct {
	origins map[string]bool
	hosts   map[string]bool // without a port
}

// New lets pages of other machines call, too. Each one has the URL of its scheme, host and port, as
// "https://app.example.com" or "http://10.0.0.7:3000".
func New(urls []string) (*Guard, error) {
	g := &Guard{origins: map[string]bool{}, hosts: map[string]bool{}}
	for _, text := range urls {
		origin, host, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("%q names no page's origin: %w: want a scheme, a host and "+
				"perhaps a port, as https://app.example.com", text, err)
		}
		g.origins[origin], g.hosts[host] = true, true
	}
	return g, nil
}

// parse returns an origin as browsers send it: in lower case, and without the scheme's own port.
func parse(text string) (origin, host string, err error) {
	u, err := url.Parse(strings.ToLower(text))
	switch {
	case err != nil:
		return "", "", errors.New("it is no URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return "", "", errors.New("its scheme is neither http nor https")
	case u.Hostname() == "" || strings.Contains(u.Host, "*"):
		return "", "", errors.New("it has no host name")
	case u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return "", "", errors.New("it has more than that")
	}
	if strings.ContainsFunc(u.Host, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return "", "", errors.New("its host name has letters beyond ASCII: want it as browsers " +
			"send it, as xn--…")
	}
	if n, err := strconv.Atoi(u.Port()); u.Port() != "" &&
		(err != nil || n < 1 || n > 65535 || u.Port()[0] == '0') {
		return "", "", fmt.Errorf("its port is %s: want 1 to 65535", u.Port())
	}
	host = u.Host
	port, own := u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]
	if port == "" || port == own {
		host = strings.TrimSuffix(host, ":"+port)
	}
	return u.Scheme + "://" + host, u.Hostname(), nil
}

// CheckCall returns an error if a call comes from a page that may not call. A call without an
// Origin may come to any host name, as through a tunnel.
func (g *Guard) CheckCall(r *http.Request) error {
	for _, origin := range r.Header.Values("Origin") {
		if !g.allows(origin) {
			return fmt.Errorf("pages of %.200q may not call: only pages of this machine may, and "+
				"those of --allow-origin", origin)
		}
	}
	return nil
}

// CheckPage returns an error if a request for a page of the server, as GET /metrics, comes from a
// web page that may not read it. Browsers send no Origin with a GET to the page's own host. So on
// a connection to a loopback address the host name must be one of this machine.
func (g *Guard) CheckPage(r *http.Request) error {
	if err := g.CheckCall(r); err != nil {
		return err
	}
	site := r.Header.Get("Sec-Fetch-Site")
	if (site == "cross-site" || site == "same-site") && r.Header.Get("Origin") == "" {
		return errors.New("other sites may not show this page: open its address itself")
	}
	if overLoopback(r) && !g.names(r.Host) {
		return fmt.Errorf("the host name %.200q is none of this machine: use localhost or "+
			"127.0.0.1, or --allow-origin http://HOST", r.Host)
	}
	return nil
}

// overLoopback reports whether the client has called a loopback address. If the server does not
// know that, the client's own address decides.
func overLoopback(r *http.Request) bool {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		return local.IP.IsLoopback()
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return err == nil && IsLocal(host)
}

// Share lets the web page that asks read the answer. CheckPage has passed the request.
func Share(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Origin") != "" {
		w.Header().Set("Access-Control-Allow-Origin", "*")
	}
}

// Refuse answers a request for which CheckCall or CheckPage has returned an error. It leaves the
// body unread, and so ends a connection of HTTP/1.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.ProtoMajor < 2 {
		w.Header().Set("Connection", "close")
	}
	http.Error(w, err.Error(), http.StatusForbidden)
}

func (g *Guard) allows(origin string) bool {
	text, host, err := parse(origin)
	return err == nil && (IsLocal(host) || g.origins[text])
}

// names reports whether a request's host is a name of this machine or of an allowed page.
func (g *Guard) names(host string) bool {
	if host == "" { // HTTP/1.0; browsers send one
		return true
	}
	u, err := url.Parse("http://" + strings.ToLower(host))
	if err != nil {
		return false
	}
	name := strings.TrimSuffix(u.Hostname(), ".")
	switch name {
	case "host.docker.internal", "host.containers.internal": // this machine, to its containers
		return true
	}
	if own, err := os.Hostname(); err == nil && strings.EqualFold(name, own) {
		return true
	}
	return IsLocal(name) || g.hosts[name]
}

// IsLocal reports whether a host name or address, without a port, is of this machine alone:
// localhost, a subdomain of it (RFC 6761, 6.3), or a loopback address.
func IsLocal(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && address.Unmap().IsLoopback()
}
