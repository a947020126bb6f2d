package keyspace

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// rangeText is a range as the API writes it: decimal, since a JSON number is no 128 bits.
type rangeText struct {
	Start string `json:"startingHashKey"`
	End   string `json:"endingHashKey"`
}

type stepText struct {
	Kind   StepKind    `json:"kind"`
	From   []rangeText `json:"from,omitempty"`
	To     []rangeText `json:"to,omitempty"`
	Shards int         `json:"shards,omitempty"`
}

type shardText struct {
	rangeText
	Load uint64 `json:"load"`
}

type pointText struct {
	At     string `json:"hashKey"`
	Weight uint64 `json:"load"`
}

type planText struct {
	Open   []rangeText `json:"open"`
	Steps  []stepText  `json:"steps"`
	Final  []shardText `json:"final"`
	TooHot []pointText `json:"tooHot,omitempty"`
}

// MarshalJSON writes the plan with hash keys in decimal, as texts:
//
//	{"open": [{"startingHashKey", "endingHashKey"}…],
//	 "steps": [{"kind": "split" or "merge", "from": [range…], "to": [range…]}…],
//	 "final": [{"startingHashKey", "endingHashKey", "load"}…],
//	 "tooHot": [{"hashKey", "load"}…]}
//
// A scaling is {"kind": "scale", "shards": n}.
func (p Plan) MarshalJSON() ([]byte, error) {
	text := planText{Open: rangeTexts(p.Open), Steps: []stepText{}, Final: []shardText{}}
	for _, s := range p.Steps {
		text.Steps = append(text.Steps, stepText{
			Kind: s.Kind, From: rangeTexts(s.From), To: rangeTexts(s.To), Shards: s.Shards,
		})
	}
	for _, s := range p.Final {
		text.Final = append(text.Final,
			shardText{rangeText: rangeTexts([]Range{s.Range})[0], Load: s.Load})
	}
	for _, point := range p.TooHot {
		text.TooHot = append(text.TooHot, pointText{point.At.String(), point.load()})
	}
	return json.Marshal(text)
}

// UnmarshalJSON reads what MarshalJSON writes, and refuses what is not a whole plan: members
// that it does not know, and whatever Validate does.
func (p *Plan) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var text planText
	if err := decoder.Decode(&text); err != nil {
		return fmt.Errorf("a plan of shards: %w", err)
	}
	var plan Plan
	var err error
	key := func(text string) Key {
		k, wrong := Parse(text)
		if err == nil {
			err = wrong
		}
		return k
	}
	read := func(r rangeText) Range { return Range{Start: key(r.Start), End: key(r.End)} }
	reads := func(texts []rangeText) (ranges []Range) {
		for _, r := range texts {
			ranges = append(ranges, read(r))
		}
		return ranges
	}
	plan.Open = reads(text.Open)
	for _, s := range text.Steps {
		plan.Steps = append(plan.Steps, Step{
			Kind: s.Kind, From: reads(s.From), To: reads(s.To), Shards: s.Shards,
		})
	}
	for _, s := range text.Final {
		plan.Final = append(plan.Final, PlannedShard{Range: read(s.rangeText), Load: s.Load})
	}
	for _, point := range text.TooHot {
		plan.TooHot = append(plan.TooHot, Point{At: key(point.At), Weight: point.Weight})
	}
	if err == nil {
		err = plan.Validate()
	}
	if err != nil {
		return fmt.Errorf("a plan of shards: %w", err)
	}
	*p = plan
	return nil
}

func rangeTexts(ranges []Range) []rangeText {
	texts := make([]rangeText, len(ranges))
	for i, r := range ranges {
		texts[i] = rangeText{Start: r.Start.String(), End: r.End.String()}
	}
	return texts
}
