package interop

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/runneltest"
)

// attack is a page that calls the server of its own host, and writes down which calls it could read.
// The page is at /attack.
const attack = `<!doctype html><pre id=out>nothing</pre><script>
const calls = {
  list: () => fetch('%[1]s/', {method: 'POST', body: '{}', headers: {
    'Content-Type': 'application/x-amz-json-1.1', 'X-Amz-Target': 'Kinesis_20131202.ListStreams'}}),
  simple: () => fetch('%[1]s/', {method: 'POST', body: 'Action=GetCallerIdentity&Version=2011-06-15',
    headers: {'Content-Type': 'application/x-www-form-urlencoded'}}),
  drop: () => fetch('%[1]s/', {method: 'POST', body: '{"StreamName":"orders"}', headers: {
    'Content-Type': 'application/x-amz-json-1.1', 'X-Amz-Target': 'Kinesis_20131202.DeleteStream'}}),
  metrics: () => fetch('%[1]s/metrics'),
};
(async () => {
  let out = '';
  for (const name in calls) {
    try { out += name + '=' + (await calls[name]()).status + ' ' }
    catch { out += name + '=blocked ' }
  }
  document.getElementById('out').textContent = out;
})();
</script>`

// A page whose host name was pointed at this machine reaches the server in a real browser, and gets
// nothing; nor does a page that calls the server's own address. A page of this machine may call.
func TestForeignPagesInChromium(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no Chromium: interop/install installs it")
	}
	server := runneltest.NewServer(t, runneltest.WithStream("orders", 1))
	target, err := url.Parse(server.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	// The front stands for a name server: what its page asks for at its own host reaches the server
	// as if the page's name had got the server's address.
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/attack" {
			pass.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, attack, r.URL.Query().Get("at"))
	}))
	t.Cleanup(front.Close)
	port := front.URL[strings.LastIndexByte(front.URL, ':'):]
	for _, c := range []struct{ host, at, want string }{
		{"evil.example", "", "list=403 simple=403 drop=403 metrics=403"},
		{"evil.example", server.Endpoint(), "list=blocked simple=blocked drop=blocked metrics=blocked"},
		{"localhost", "", "list=200 simple=200 drop=200 metrics=200"},
	} {
		address := "http://" + c.host + port + "/attack?at=" + url.QueryEscape(c.at)
		command := exec.CommandContext(t.Context(), chromium, "--headless=new", "--no-sandbox",
			"--disable-gpu", "--no-first-run", "--disable-background-networking",
			"--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir(),
			"--host-resolver-rules=MAP evil.example 127.0.0.1",
			"--virtual-time-budget=20000", "--dump-dom", address)
		dom, err := command.Output()
		if err != nil {
			t.Fatalf("chromium: %v", err)
		}
		got := regexp.MustCompile(`<pre id="out">([^<]*)</pre>`).FindSubmatch(dom)
		if got == nil || strings.TrimSpace(html.UnescapeString(string(got[1]))) != c.want {
			t.Errorf("a page of %s that calls %q got %q, want %s", c.host, c.at, got, c.want)
		}
	}
}
