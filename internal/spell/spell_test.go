package spell

import "testing"

func TestNear(t *testing.T) {
	names := []string{"PutRecord", "PutRecords", "GetRecords", "SubscribeToShard", "off"}
	for _, c := range []struct{ word, want string }{
		{"PutRecrods", "PutRecords"},
		{"putrecrd", "PutRecord"},
		{"PUTRECORDS", "PutRecords"},
		{"GetRecord", "GetRecords"},
		{"SubscribeShard", "SubscribeToShard"},
		{"SubscribeToAllShards", "SubscribeToShard"},
		{"of", "off"},
		{"Explode", ""},
		{"", ""},
	} {
		if got := Near(c.word, names); got != c.want {
			t.Errorf("Near(%q) = %q, want %q", c.word, got, c.want)
		}
	}
	if got := DidYouMean("offf", names); got != " (did you mean off?)" {
		t.Error(got)
	}
	if got := DidYouMean("on and on", names); got != "" {
		t.Error(got)
	}
}
