package wire

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// canonicalRequest returns the text that Signature V4 signs, by "Create a canonical request" of
// AWS' IAM user guide: method, path, query, the signed headers, their names, and the hash of the
// body, a line each. Everything but S3 encodes the path twice, as here.
func canonicalRequest(r *http.Request, a *authorization, signed []string, bodyHash string) []byte {
	c := make([]byte, 0, 1024)
	c = append(append(c, r.Method...), '\n')
	c = append(appendCanonicalPath(c, r.URL.EscapedPath()), '\n')
	query := a.query
	if query == nil && r.URL.RawQuery != "" {
		query = r.URL.Query() // authorizationOf has seen that it can be read
	}
	c = append(appendCanonicalQuery(c, query), '\n')
	for _, name := range signed {
		c = append(append(c, name...), ':')
		c = append(appendCanonicalHeader(c, r, name), '\n')
	}
	c = append(append(append(c, '\n'), a.signedHeaders...), '\n')
	return append(c, bodyHash...)
}

// appendCanonicalPath resolves dots and repeated slashes of the path as it was sent, and encodes
// the result again.
func appendCanonicalPath(c []byte, path string) []byte {
	if strings.Contains(path, "//") || strings.Contains(path, "/.") {
		var parts []string
		for part := range strings.SplitSeq(path, "/") {
			switch part {
			case "", ".":
			case "..":
				parts = parts[:max(0, len(parts)-1)]
			default:
				parts = append(parts, part)
			}
		}
		slash := strings.HasSuffix(path, "/") && len(parts) > 0
		path = "/" + strings.Join(parts, "/")
		if slash {
			path += "/"
		}
	}
	if path == "" {
		path = "/"
	}
	return appendURIEncoded(c, path, true)
}

// appendCanonicalQuery encodes the parameters and then sorts them, without the signature.
func appendCanonicalQuery(c []byte, query url.Values) []byte {
	type parameter struct{ name, value string }
	var parameters []parameter
	for name, values := range query {
		if name == "X-Amz-Signature" {
			continue
		}
		encoded := string(appendURIEncoded(nil, name, false))
		for _, value := range values {
			parameters = append(parameters,
				parameter{encoded, string(appendURIEncoded(nil, value, false))})
		}
	}
	slices.SortFunc(parameters, func(a, b parameter) int {
		if order := strings.Compare(a.name, b.name); order != 0 {
			return order
		}
		return strings.Compare(a.value, b.value)
	})
	for i, p := range parameters {
		if i > 0 {
			c = append(c, '&')
		}
		c = append(append(append(c, p.name...), '='), p.value...)
	}
	return c
}

// appendCanonicalHeader appends a header's values, separated by commas, with single spaces.
// net/http removes the host from the map. (It removes Transfer-Encoding too, which no SDK signs.)
func appendCanonicalHeader(c []byte, r *http.Request, name string) []byte {
	values := r.Header[http.CanonicalHeaderKey(name)]
	if name == "host" || name == ":authority" {
		values = []string{r.Host}
	}
	for i, value := range values {
		if i > 0 {
			c = append(c, ',')
		}
		c = appendSingleSpaced(c, value)
	}
	return c
}

func appendSingleSpaced(c []byte, value string) []byte {
	value = strings.Trim(value, " ")
	for i := range len(value) {
		if value[i] != ' ' || value[i-1] != ' ' {
			c = append(c, value[i])
		}
	}
	return c
}

// appendURIEncoded encodes every byte but RFC 3986's unreserved ones, and slashes unless they are
// to stay.
func appendURIEncoded(c []byte, text string, slashes bool) []byte {
	const digits = "0123456789ABCDEF"
	for i := range len(text) {
		b := text[i]
		switch {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9',
			b == '-', b == '_', b == '.', b == '~', b == '/' && slashes:
			c = append(c, b)
		default:
			c = append(c, '%', digits[b>>4], digits[b&15])
		}
	}
	return c
}
