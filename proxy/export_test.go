package proxy

import "time"

// SetReadTimeout changes how long a request may take to come, before Serve.
func (p *Proxy) SetReadTimeout(timeout time.Duration) { p.readTimeout = timeout }
