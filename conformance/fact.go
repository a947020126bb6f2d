package main

import "slices"

// fact is one thing that is true of the API.
type fact struct {
	id     string // area/what, stable: results of different days are compared by it
	op     string // the operation that it is about; "" is the protocol below the operations
	says   string // the behaviour, one sentence
	source source
	needs  need
	check  func(c *check)
}

// need is what a fact asks for besides an endpoint.
type need int

const (
	nothing need = 0
	// patience: the fact takes minutes, so it wants --slow.
	patience need = 1 << iota
	// signatures: the endpoint must check them; one that takes anything is not asked.
	signatures
	// freeBilling: the fact changes what an account pays, so AWS is never asked.
	freeBilling
)

// sourceKind says how much a source is worth.
type sourceKind int

const (
	page      sourceKind = iota // AWS's API reference or developer guide says so
	model                       // AWS's service model says so (2013-12-02)
	validated                   // a test of another project that ran against AWS says so
	recorded                    // an answer of AWS that somebody published
	sdkCode                     // AWS's SDKs rely on it
	guessed                     // nobody was found who says so
)

var kinds = []sourceKind{page, model, validated, recorded, sdkCode, guessed}

func (k sourceKind) String() string {
	return [...]string{
		"AWS page", "service model", "AWS-validated test", "recorded answer", "SDK code", "guess",
	}[k]
}

// source is where a fact comes from. where names the page, the test, the thread; of a guess it
// is the reason.
type source struct {
	kind  sourceKind
	where string
}

func (s source) String() string {
	if s.where == "" {
		return s.kind.String()
	}
	return s.kind.String() + ": " + s.where
}

func onPage(name string) source       { return source{page, name} }
func inModel(shape string) source     { return source{model, shape} }
func seenBy(test string) source       { return source{validated, test} }
func quotedIn(thread string) source   { return source{recorded, thread} }
func reliedOnBy(code string) source   { return source{sdkCode, code} }
func guess(reason string) source      { return source{guessed, reason} }
func kinesalite(file string) source   { return seenBy("kinesalite test/" + file + ".js") }
func localstack(test string) source   { return seenBy("LocalStack test_kinesis " + test) }
func (s source) is(k sourceKind) bool { return s.kind == k }

// below makes facts about the protocol below the operations, whose ids begin with an area.
func below(area string) func(id, says string, source source, check func(c *check)) fact {
	return func(id, says string, source source, check func(c *check)) fact {
		return fact{area + id, "", says, source, nothing, check}
	}
}

// facts is the whole suite, sorted by id.
func facts() []fact {
	all := slices.Concat(
		wireFacts(), corsFacts(), authFacts(), cborFacts(), typeFacts(), constraintFacts(),
		missingFacts(), createFacts(), describeFacts(), listStreamsFacts(), listShardsFacts(),
		filterFacts(), putRecordFacts(), orderingFacts(), putRecordsFacts(), iteratorFacts(),
		iteratorErrorFacts(), getRecordsFacts(), splitFacts(), mergeFacts(), shardCountFacts(),
		retentionFacts(), tagFacts(), resourceTagFacts(), policyFacts(), encryptionFacts(),
		monitoringFacts(), recordSizeFacts(), modeFacts(), accountFacts(), consumerFacts(),
		subscribeFacts(), deleteFacts(), sdkFacts(), cborErrors(), consumerLives(),
		createMembers(), describeStreamCalls(), getRecordsAnswers(), iteratorLatest(),
		iteratorEnds(), listShardsTokens(), listStreamsPages(), putRecordAnswers(),
		retentionChanges(), shardCountRefusals(), subscribeRecords(), subscribeLife(), sdkFanOut(),
		wireTolerance(), createShards(),
	)
	slices.SortFunc(all, func(a, b fact) int { return compareIDs(a.id, b.id) })
	return all
}

func compareIDs(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
