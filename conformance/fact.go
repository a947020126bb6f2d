package main

import "slices"

// fact is one documented or observed behaviour of the API, with its check.
type fact struct {
	id     string // area/name; stable, since results of different days are compared by id
	op     string // the operation; "" for the protocol below the operations
	says   string // the behaviour, one sentence
	source source
	needs  need
	check  func(c *check)
}

// need is a set of conditions for asking a fact, besides an endpoint.
type need int

const (
	nothing need = 0
	// patience: the fact takes minutes, so it is asked with --slow only.
	patience need = 1 << iota
	// signatures: the fact is asked only if the endpoint checks signatures.
	signatures
	// freeBilling: the fact changes the account's bill, so AWS is never asked.
	freeBilling
)

// sourceKind is a kind of source, most reliable first.
type sourceKind int

const (
	page      sourceKind = iota // AWS's API reference or developer guide says so
	model                       // AWS's service model says so (2013-12-02)
	validated                   // a test of another project that ran against AWS says so
	recorded                    // a published answer of AWS
	sdkCode                     // AWS's SDKs rely on it
	guessed                     // no source was found
)

var kinds = []sourceKind{page, model, validated, recorded, sdkCode, guessed}

func (k sourceKind) String() string {
	return [...]string{
		"AWS page", "service model", "AWS-validated test", "recorded answer", "SDK code", "guess",
	}[k]
}

// source is the origin of a fact. where names the page, the test or the thread; for a guess it
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

// below returns a maker of facts about the protocol below the operations. Their ids begin with
// area.
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
