package main

import (
	"fmt"
	"slices"
	"strings"
)

// measured has all figures of a run. It is for one goroutine.
type measured struct {
	disk         disk
	values       map[string]map[cell][]float64 // by the server's name
	notes        []string
	runnelFailed bool
}

type cell struct {
	row row
	via via
}

func newMeasured() *measured { return &measured{values: map[string]map[cell][]float64{}} }

func (m *measured) add(s *server, r row, v via, value float64) {
	if m.values[s.name] == nil {
		m.values[s.name] = map[cell][]float64{}
	}
	at := cell{r, v}
	m.values[s.name][at] = append(m.values[s.name][at], value)
}

// failed notes the reason why a turn has no values, once for each reason.
func (m *measured) failed(t turn, err error) {
	note := fmt.Sprintf("%s, %s: %v", t.server.name, t.group, err)
	if !slices.Contains(m.notes, note) {
		m.notes = append(m.notes, note)
	}
	m.runnelFailed = m.runnelFailed || strings.HasPrefix(t.server.name, "runnel")
}

// median returns the median over the rounds; false if there is no value.
func (m *measured) median(server string, r row, v via) (float64, bool) {
	values := slices.Sorted(slices.Values(m.values[server][cell{r, v}]))
	n := len(values)
	if n == 0 {
		return 0, false
	}
	return (values[(n-1)/2] + values[n/2]) / 2, true
}

// ratio returns the quotient of two servers' medians; false if one is missing.
func (m *measured) ratio(of, to string, r row, v via) (float64, bool) {
	above, ok := m.median(of, r, v)
	below, there := m.median(to, r, v)
	if !ok || !there || below == 0 {
		return 0, false
	}
	return above / below, true
}
