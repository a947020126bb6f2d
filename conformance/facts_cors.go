package main

import "net/http"

// corsFacts are about CORS, the requests of browsers.
func corsFacts() []fact {
	preflight := func(c *check, headers map[string]string) *answer {
		headers["Origin"] = "http://localhost:3000"
		a := c.send(request{method: http.MethodOptions, headers: headers, signer: unsigned})
		c.equal("status", a.status, 200)
		c.equal("body", string(a.body), "")
		c.equal("Access-Control-Allow-Origin", a.header.Get("Access-Control-Allow-Origin"), "*")
		c.equal("Access-Control-Max-Age", a.header.Get("Access-Control-Max-Age"), "172800")
		return a
	}
	return []fact{
		{
			"cors/preflight", "",
			"The answer to OPTIONS with Origin is 200 with an empty body, valid for two days.",
			kinesalite("connection"), nothing, func(c *check) { preflight(c, map[string]string{}) },
		},
		{
			"cors/preflight-echo", "", "The requested headers and method are allowed.",
			kinesalite("connection"), nothing, func(c *check) {
				a := preflight(c, map[string]string{
					"Access-Control-Request-Headers": "a, b, c",
					"Access-Control-Request-Method":  "d",
				})
				c.equal("headers", a.header.Get("Access-Control-Allow-Headers"), "a, b, c")
				c.equal("methods", a.header.Get("Access-Control-Allow-Methods"), "d")
			},
		},
		{
			"cors/answer", "", "The answer to a request with Origin allows all origins.",
			kinesalite("connection"), nothing, func(c *check) {
				a := c.send(jsonRequest(listStreams, object{}).with("Origin",
					"http://localhost:3000"))
				c.equal("Access-Control-Allow-Origin", a.header.Get("Access-Control-Allow-Origin"),
					"*")
				c.want(a.header.Get("Access-Control-Expose-Headers") != "",
					"an Access-Control-Expose-Headers", a.header)
			},
		},
	}
}
