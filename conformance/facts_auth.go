package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// authFacts are about signatures. An endpoint that does not check signatures is not asked.
func authFacts() []fact {
	connection := kinesalite("connection")
	// with sends a call with these headers instead of a signature.
	with := func(path string, headers map[string]string) func(c *check) *answer {
		return func(c *check) *answer {
			r := jsonRequest(listStreams, object{})
			r.path, r.signer = path, unsigned
			for name, value := range headers {
				r = r.with(name, value)
			}
			return c.send(r)
		}
	}
	is := func(id, says string, source source, ask func(c *check) *answer, code, text string) fact {
		return fact{"auth/" + id, "", says, source, signatures, func(c *check) {
			c.isError(ask(c), code, text)
		}}
	}
	needs := "Authorization header requires 'Credential' parameter. Authorization header " +
		"requires 'Signature' parameter. Authorization header requires 'SignedHeaders' " +
		"parameter. Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' " +
		"header. " +
		"Authorization=X"
	query := "AWS query-string parameters must include 'X-Amz-Algorithm'. AWS query-string " +
		"parameters must include 'X-Amz-Credential'. AWS query-string parameters must include " +
		"'X-Amz-Signature'. AWS query-string parameters must include 'X-Amz-SignedHeaders'. AWS " +
		"query-string parameters must include 'X-Amz-Date'. Re-examine the query-string parameters."
	return append(signatureFacts(), []fact{
		is("none", "A call without a signature is refused.", connection, with("/", nil),
			"MissingAuthenticationTokenException", "Missing Authentication Token"),
		is("header-incomplete", "An Authorization header must have all parts, and a date beside "+
			"it.",
			connection, with("/", map[string]string{"Authorization": "X"}),
			"IncompleteSignatureException", needs),
		is("header-partly", "Spaces may separate parts; the error names missing ones.", connection,
			with("/", map[string]string{
				"Authorization": "AWS4- Signature=b Credential=a", "Date": "a",
			}), "IncompleteSignatureException", "Authorization header requires 'SignedHeaders' "+
				"parameter. Authorization=AWS4- Signature=b Credential=a"),
		is("query-incomplete", "A signature in the query must have all parts.", connection,
			with("/?X-Amz-Algorithm", nil), "IncompleteSignatureException", query),
		is("query-without-algorithm", "Without X-Amz-Algorithm a query is no signature.",
			connection,
			with("/?X-Amz-Credential=a&X-Amz-Signature=b&X-Amz-SignedHeaders=c&X-Amz-Date=d", nil),
			"MissingAuthenticationTokenException", "Missing Authentication Token"),
		is("both", "A call with a signature in the header and in the query is refused.", connection,
			with("/?X-Amz-Algorithm", map[string]string{"Authorization": "X"}),
			"InvalidSignatureException", "Found both 'X-Amz-Algorithm' as a query-string param "+
				"and "+
				"'Authorization' as HTTP header."),
	}...)
}

func signatureFacts() []fact {
	// signed calls ListStreams with a signature made by sign.
	signed := func(id, says string, source source, sign signing, code, pattern string) fact {
		return fact{"auth/" + id, "", says, source, signatures, func(c *check) {
			r := jsonRequest(listStreams, object{})
			r.signer = sign
			a := c.send(r)
			c.isError(a, code, "")
			c.matches("message", a.message(), pattern)
		}}
	}
	at := func(offset time.Duration) signing {
		return func(ctx context.Context, k *kit, r *http.Request, body []byte) error {
			credentials, err := k.credentials.Retrieve(ctx)
			if err != nil {
				return fmt.Errorf("credentials: %w", err)
			}
			return k.signAs(ctx, credentials, r, body, time.Now().Add(offset))
		}
	}
	stranger := func(ctx context.Context, k *kit, r *http.Request, body []byte) error {
		credentials, err := k.credentials.Retrieve(ctx)
		if err != nil {
			return fmt.Errorf("credentials: %w", err)
		}
		credentials.AccessKeyID = "AKIDOFNOBODYATALL000"
		return k.signAs(ctx, credentials, r, body, time.Now())
	}
	common := "AWS General Reference: Troubleshooting Signature Version 4"
	mismatch := `^The request signature we calculated does not match the signature you provided\.`
	return []fact{
		signed("wrong-secret", "A signature of another secret is refused.", onPage(common),
			wrongSecret,
			"InvalidSignatureException", mismatch),
		signed("tampered", "A signature of another body is refused.", onPage(common),
			func(ctx context.Context, k *kit, r *http.Request, _ []byte) error {
				return rightly(ctx, k, r, []byte("{ }"))
			}, "InvalidSignatureException", mismatch),
		signed("expired", "A signature of 15 minutes ago has expired.", onPage(common),
			at(-16*time.Minute), "InvalidSignatureException", `^Signature expired: `),
		signed("early", "A signature of 15 minutes ahead is not yet current.", onPage(common),
			at(16*time.Minute), "InvalidSignatureException", `^Signature not yet current: `),
		signed("stranger", "An unknown access key is refused.",
			quotedIn("many threads on PutRecords and UnrecognizedClientException"), stranger,
			"UnrecognizedClientException", `^The security token included in the request is `+
				`invalid\.$`),
	}
}
