package producer

// deliver reports results, one at a time and in order, until stop is closed. It then reports the
// remaining results and returns.
func (p *Producer) deliver() {
	for {
		select {
		case <-p.deliverNow:
			p.report()
		case <-p.stop:
			for !p.stopDelivery() {
				p.report()
			}
			return
		}
	}
}

// stopDelivery reports whether no result is left, and if so ends the reporting: flush does not wait
// any more.
func (p *Producer) stopDelivery() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.stopped = len(p.mu.core.ledger.settled) == 0
	return p.mu.stopped
}

// report reports all results that there are now.
func (p *Producer) report() {
	for {
		p.mu.Lock()
		batch := p.mu.core.ledger.settled
		p.mu.core.ledger.settled = nil
		p.mu.Unlock()
		p.callSettled() // Settled comes before the callbacks of the units' records
		if len(batch) == 0 {
			return
		}
		for len(batch) > 0 {
			// Room is released in portions: often enough for the callers that wait for it,
			// and seldom enough to cost little.
			portion := batch[:min(len(batch), 64)]
			batch = batch[len(portion):]
			p.reportPortion(portion)
		}
	}
}

func (p *Producer) reportPortion(portion []settled) {
	records, bytes := 0, 0
	for i := range portion {
		e, r := portion[i].entry, portion[i].result
		if e == nil {
			continue
		}
		if p.cfg.OnResult != nil {
			p.cfg.OnResult(e.record, r)
		}
		switch {
		case e.future != nil:
			e.future.settle(r)
		case e.done != nil:
			e.done(r)
		}
		if r.Err != nil && e.done == nil && p.cfg.OnResult == nil {
			p.unseen.add(e.future, r.Err)
		}
		if e.used != nil {
			e.used()
		}
		records++
		bytes += e.size()
	}
	p.mu.Lock()
	p.mu.buffered -= records
	p.mu.bytes -= bytes
	for i := range portion {
		if e := portion[i].entry; e != nil && !e.resumed { // resumed records hold no room
			p.mu.room.release(int(e.group), 1, e.size())
		}
	}
	p.mu.room.serve()
	p.mu.Unlock()
	for i := range portion {
		if flushed := portion[i].flushed; flushed != nil {
			close(flushed)
		}
	}
}
