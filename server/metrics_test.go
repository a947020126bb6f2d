package server_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/schemas"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	kinesistypes "github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"
	"github.com/aws/smithy-go/transport/http/protocol/awsquery"
	"github.com/aws/smithy-go/transport/http/protocol/rpcv2"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/runnel-stream/runnel/runneltest"
	"github.com/runnel-stream/runnel/server"
)

// The SDK's own writers and readers of the three protocols.
var watchProtocols = map[string]smithyhttp.ClientProtocol{
	"rpcv2Cbor":  rpcv2.NewCBOR(schemas.GraniteServiceVersion20100801),
	"awsJson1_0": awsjson.New10(schemas.GraniteServiceVersion20100801),
	"awsQuery":   awsquery.New(schemas.GraniteServiceVersion20100801),
}

// watchClient makes a CloudWatch client without retries.
func watchClient(cfg aws.Config, protocol smithyhttp.ClientProtocol) *cloudwatch.Client {
	return cloudwatch.NewFromConfig(cfg, func(o *cloudwatch.Options) {
		o.Protocol, o.Retryer = protocol, aws.NopRetryer{}
	})
}

// scrape reads GET /metrics and checks it as promtool does: it is parsed, names are valid.
func scrape(t *testing.T, get func(url string) (*http.Response, error), endpoint string) map[string]*dto.MetricFamily {
	t.Helper()
	answer, err := get(endpoint + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("/metrics: %s", answer.Status)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		t.Fatalf("/metrics cannot be read: %v", err)
	}
	for name, family := range families {
		if !strings.HasPrefix(name, "runnel_") || family.GetHelp() == "" {
			t.Errorf("%s: want a name runnel_… and a help text", name)
		}
		if counter := family.GetType() == dto.MetricType_COUNTER; strings.HasSuffix(name, "_total") && !counter {
			t.Errorf("%s is no counter", name)
		}
	}
	return families
}

// of returns the value of the sample with these labels, written as "a=b,c=d"; -1 if there is none.
func of(families map[string]*dto.MetricFamily, name, labels string) float64 {
	for _, m := range families[name].GetMetric() {
		has := map[string]string{}
		for _, label := range m.GetLabel() {
			has[label.GetName()] = label.GetValue()
		}
		same := true
		for pair := range strings.SplitSeq(labels, ",") {
			key, value, _ := strings.Cut(pair, "=")
			same = same && has[key] == value
		}
		if !same {
			continue
		}
		switch families[name].GetType() {
		case dto.MetricType_COUNTER:
			return m.GetCounter().GetValue()
		case dto.MetricType_GAUGE:
			return m.GetGauge().GetValue()
		case dto.MetricType_SUMMARY:
			return m.GetSummary().GetSampleSum()
		case dto.MetricType_HISTOGRAM:
			return float64(m.GetHistogram().GetSampleCount())
		}
	}
	return -1
}

// TestPutMetricData: by the SDK in each protocol, unsigned and signed, packed and not.
func TestPutMetricData(t *testing.T) {
	for _, keys := range []bool{false, true} {
		options := []runneltest.Option{runneltest.WithWorld("111122223333", "eu-west-1")}
		if keys {
			options = append(options, runneltest.WithCredentials("111122223333", "secret"))
		}
		server := runneltest.NewServer(t, options...)
		for name, protocol := range watchProtocols {
			watch := watchClient(server.AWSConfig(), protocol)
			data := []types.MetricDatum{{
				MetricName: aws.String("m"), Value: aws.Float64(2.5), Timestamp: aws.Time(time.Now()),
				Unit: types.StandardUnitMilliseconds, StorageResolution: aws.Int32(1),
				Dimensions: []types.Dimension{{Name: aws.String("protocol"), Value: aws.String(name)}},
			}}
			for i := range 300 { // above 10 KiB, from where on the SDK packs
				data = append(data, types.MetricDatum{
					MetricName: aws.String(fmt.Sprint("many", i)),
					StatisticValues: &types.StatisticSet{
						Sum: aws.Float64(10), Minimum: aws.Float64(1), Maximum: aws.Float64(9), SampleCount: aws.Float64(2),
					},
				})
			}
			for range 2 {
				if _, err := watch.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{
					Namespace: aws.String("app"), MetricData: data,
				}); err != nil {
					t.Fatalf("%s, keys %v: %v", name, keys, err)
				}
			}
			_, err := watch.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{
				Namespace:  aws.String("app"),
				MetricData: []types.MetricDatum{{MetricName: aws.String("m"), Value: aws.Float64(1), Values: []float64{1}}},
			})
			// The SDK has two names for it: the model's, and the query protocol's.
			if got := code(err); strings.TrimSuffix(got, "Exception") != "400 InvalidParameterCombination" {
				t.Errorf("%s: %v", name, err)
			}
			_, err = watch.ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{})
			if got := code(err); got != "400 InvalidAction" || !strings.Contains(err.Error(), "GET /metrics") {
				t.Errorf("%s: another operation: %v", name, err)
			}
		}
		shown := scrape(t, getter{server.AWSConfig().HTTPClient}.get, server.Endpoint())
		for name := range watchProtocols {
			if got := of(shown, "runnel_cloudwatch_value", "metric=m,namespace=app,account=111122223333,region=eu-west-1,unit=Milliseconds,dimensions=protocol="+name); got != 5 {
				t.Errorf("%s: the sum is %v, want 5", name, got)
			}
		}
		if got := of(shown, "runnel_cloudwatch_value", "metric=many299"); got != 3*2*10 {
			t.Errorf("the sum is %v, want 60", got)
		}
		for label, want := range map[string]float64{
			"service=monitoring,operation=PutMetricData,result=ok":                                   6,
			"service=monitoring,operation=PutMetricData,result=InvalidParameterCombinationException": 3,
			"service=monitoring,operation=unknown,result=UnknownOperationException":                  3,
		} {
			if got := of(shown, "runnel_calls_total", label); got != want {
				t.Errorf("%s: %v, want %v", label, got, want)
			}
		}
	}
}

// TestWatchNeedsItsKey: a call with a signature for another service or by another key is refused,
// in the caller's protocol.
func TestWatchNeedsItsKey(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithCredentials("AKIDONE", "one"))
	put := &cloudwatch.PutMetricDataInput{
		Namespace: aws.String("app"), MetricData: []types.MetricDatum{{MetricName: aws.String("m"), Value: aws.Float64(1)}},
	}
	for name, want := range map[string][2]string{
		"rpcv2Cbor":  {"400 InvalidSignatureException", "400 UnrecognizedClientException"},
		"awsJson1_0": {"400 InvalidSignatureException", "400 UnrecognizedClientException"},
		"awsQuery":   {"403 SignatureDoesNotMatch", "403 InvalidClientTokenId"},
	} {
		for i, id := range []string{"AKIDONE", "AKIDTWO"} {
			watch := watchClient(server.AWSConfig(), watchProtocols[name])
			_, err := watch.PutMetricData(t.Context(), put, func(o *cloudwatch.Options) {
				o.Credentials = credentials.NewStaticCredentialsProvider(id, "guess", "")
			})
			if got := code(err); got != want[i] {
				t.Errorf("%s with %s: %v, want %s", name, id, err, want[i])
			}
		}
	}
}

func TestGetCallerIdentity(t *testing.T) {
	for _, options := range [][]runneltest.Option{
		{runneltest.WithWorld("111122223333", "eu-west-1")},
		{runneltest.WithCredentials("111122223333", "secret")},
	} {
		server := runneltest.NewServer(t, options...)
		cfg := server.AWSConfig()
		cfg.Credentials = credentials.NewStaticCredentialsProvider("111122223333", "secret", "")
		client := sts.NewFromConfig(cfg, func(o *sts.Options) { o.Retryer = aws.NopRetryer{} })
		out, err := client.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
		if err != nil {
			t.Fatal(err)
		}
		if *out.Account != "111122223333" || *out.Arn != "arn:aws:iam::111122223333:root" || *out.UserId == "" {
			t.Errorf("%s, %s, %s", *out.Account, *out.Arn, *out.UserId)
		}
		_, err = client.GetSessionToken(t.Context(), &sts.GetSessionTokenInput{})
		if got := code(err); got != "400 InvalidAction" {
			t.Errorf("another operation: %v", err)
		}
	}
}

// TestKPL sends the requests of the KPL's native process: forms of the C++ SDK. Their names come in
// its order, and they end with an ampersand or with the version.
func TestKPL(t *testing.T) {
	v := serve(t, server.Config{Memory: true})
	datum := func(n int, name, unit string, rest string) string {
		member := fmt.Sprintf("&MetricData.member.%d.", n)
		return member + "MetricName=" + name +
			member + "Dimensions.member.1.Name=StreamName" + member + "Dimensions.member.1.Value=orders" +
			member + "Timestamp=" + url.QueryEscape(time.Now().UTC().Format("2006-01-02T15:04:05Z")) +
			member + "StatisticValues.SampleCount=3" + member + "StatisticValues.Sum=1.5e%2b06" +
			member + "StatisticValues.Minimum=0" + member + "StatisticValues.Maximum=1e%2B06" +
			member + "Unit=" + unit + rest
	}
	for _, c := range []struct{ body, has string }{
		{
			"Action=PutMetricData&Namespace=KinesisProducerLibrary" + datum(1, "UserRecordsPut", "Count", "") +
				datum(2, "RequestTime", "Milliseconds", "") + "&Version=2010-08-01", "<PutMetricDataResponse ",
		},
		{"Action=GetCallerIdentity&Version=2011-06-15&", "<Account>000000000000</Account>"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.endpoint+"/", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("User-Agent", "KinesisProducerLibrary/1.0.7 | Linux")
		answer, err := v.Options().HTTPClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK || !strings.Contains(string(text), c.has) ||
			answer.Header.Get("Content-Type") != "text/xml" {
			t.Errorf("%.60s: %s %s", c.body, answer.Status, text)
		}
	}
	shown := scrape(t, v.get, v.endpoint)
	for metric, unit := range map[string]string{"UserRecordsPut": "Count", "RequestTime": "Milliseconds"} {
		labels := "namespace=KinesisProducerLibrary,dimensions=StreamName=orders,metric=" + metric + ",unit=" + unit
		if got := of(shown, "runnel_cloudwatch_value", labels); got != 1.5e6 {
			t.Errorf("%s: %v", metric, got)
		}
	}
}

// get sends a GET by the client's connections.
func (v *served) get(url string) (*http.Response, error) {
	return getter{v.Options().HTTPClient}.get(url)
}

// getter sends a GET by the connections of an SDK's client.
type getter struct {
	aws.HTTPClient
}

func (g getter) get(url string) (*http.Response, error) {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return g.Do(r)
}

// TestOwnMetrics: calls by result, bytes, syncs, the state.
func TestOwnMetrics(t *testing.T) {
	v := serve(t, server.Config{Dir: t.TempDir()})
	for range 3 {
		if _, err := v.put(t.Context(), "twelve bytes"); err != nil {
			t.Fatal(err)
		}
	}
	v.wantStored(t, "twelve bytes", "twelve bytes", "twelve bytes")
	subscribeOnce(t, v.client)
	leases := dynamodb.NewFromConfig(aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(v.endpoint),
		Credentials: v.Options().Credentials, HTTPClient: v.Options().HTTPClient,
	})
	useTable(t, leases)
	for _, target := range []string{"Kinesis_20131202.MadeUp1", "Kinesis_20131202.MadeUp2", "MadeUp.Three"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.endpoint+"/", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-amz-json-1.1")
		r.Header.Set("X-Amz-Target", target)
		answer, err := v.Options().HTTPClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	shown := scrape(t, v.get, v.endpoint)
	// The subscription's end takes a moment, and a refusal is counted behind its answer.
	for of(shown, "runnel_calls_running", "") > 0 ||
		of(shown, "runnel_requests_refused_total", "") == 0 {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("a call goes on")
		}
		shown = scrape(t, v.get, v.endpoint)
	}
	for _, c := range []struct {
		name, labels string
		least, most  float64
	}{
		{"runnel_calls_total", "service=kinesis,operation=PutRecords,result=ok", 3, 3},
		{"runnel_calls_total", "service=kinesis,operation=unknown,result=UnknownOperationException", 2, 2},
		{"runnel_call_seconds", "service=kinesis,operation=PutRecords", 3, 3},
		{"runnel_call_seconds", "service=kinesis,operation=SubscribeToShard", 1, 1e6}, // it is refused until the consumer is there
		{"runnel_call_seconds", "service=dynamodb,operation=PutItem", 1, 10},
		{"runnel_call_seconds", "operation=unknown", -1, -1},
		{"runnel_requests_refused_total", "", 1, 1},
		{"runnel_request_bytes_total", "service=kinesis,operation=PutRecords", 3 * 16, 3 * 500},
		{"runnel_answer_bytes_total", "service=kinesis,operation=GetRecords", 3 * 16, 5000},
		{"runnel_answer_bytes_total", "service=kinesis,operation=SubscribeToShard", 3 * 16, 5000},
		{"runnel_sync_seconds", "folder=wal,result=ok", 4, 100},
		{"runnel_up", "", 1, 1},
		{"runnel_streams", "", 1, 1},
		{"runnel_calls_running", "", 0, 0},
		{"runnel_log_bytes", "", 100, 1 << 20},
		{"runnel_log_pending_bytes", "", 0, 1 << 10},
		{"runnel_log_paced_total", "", 0, 0},
		{"runnel_log_stalled", "", 0, 0},
		{"runnel_log_poisoned", "", 0, 0},
		{"runnel_segments_stalled", "", 0, 0},
		{"runnel_damaged_records_total", "", 0, 0},
		{"runnel_disk_bytes", "part=log", 64 << 20, 256 << 20},
		{"runnel_disk_bytes", "part=snapshots", 0, 1 << 20},
		{"runnel_disk_bytes", "part=segments", 0, 1 << 20},
		{"runnel_streams_not_shown", "", 0, 0},
		{"runnel_stream_records_in_total", "stream=s,region=us-east-1", 3, 3},
		{"runnel_stream_bytes_in_total", "stream=s,account=000000000000", 3 * 13, 3 * 20},
		{"runnel_stream_records_out_total", "stream=s", 6, 6}, // GetRecords and events
		{"runnel_stream_bytes_out_total", "stream=s", 6 * 13, 6 * 20},
		{"runnel_stream_open_shards", "stream=s", 1, 4},
		{"runnel_stream_subscriptions", "stream=s", 0, 0},
		{"runnel_cloudwatch_series", "", 0, 0},
		{"runnel_dynamo_tables", "", 1, 1},
		{"runnel_dynamo_tables_not_shown", "", 0, 0},
		{"runnel_dynamo_units_total", "account=000000000000,region=us-east-1,table=leases,kind=write", 3, 3},
		{"runnel_dynamo_units_total", "table=leases,kind=read", 1.5, 1.5},
	} {
		if got := of(shown, c.name, c.labels); got < c.least || got > c.most {
			t.Errorf("%s{%s} is %v, want %v to %v", c.name, c.labels, got, c.least, c.most)
		}
	}
	for _, m := range shown["runnel_calls_total"].GetMetric() {
		for _, label := range m.GetLabel() {
			if strings.Contains(label.GetValue(), "MadeUp") {
				t.Errorf("a caller made up a label: %v", m)
			}
		}
	}
	before := of(shown, "runnel_calls_total", "service=kinesis,operation=PutRecords,result=ok")
	if err := v.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	shown = scrape(t, v.get, v.endpoint)
	if up := of(shown, "runnel_up", ""); up != 0 {
		t.Errorf("closed, and runnel_up is %v", up)
	}
	if after := of(shown, "runnel_calls_total", "service=kinesis,operation=PutRecords,result=ok"); after != before {
		t.Errorf("closed, and %v calls, before %v", after, before)
	}
}

// TestRefusedRecordsAreCounted by stream and code. A call's time includes a delay on request, and
// the buckets have their bounds.
func TestRefusedRecordsAreCounted(t *testing.T) {
	v := serve(t, server.Config{
		Memory: true,
		Faults: "PutRecords:throttle-record=2,PutRecords:fail-record=3,PutRecords:delay=30ms",
	})
	entry := kinesistypes.PutRecordsRequestEntry{PartitionKey: aws.String("k"), Data: []byte("x")}
	for range 2 {
		out, err := v.PutRecords(t.Context(), &kinesis.PutRecordsInput{
			StreamName: aws.String("s"), Records: slices.Repeat([]kinesistypes.PutRecordsRequestEntry{entry}, 4),
		})
		if err != nil || *out.FailedRecordCount != 2 {
			t.Fatal(out, err)
		}
	}
	shown := scrape(t, v.get, v.endpoint)
	for labels, want := range map[string]float64{
		"stream=s,region=us-east-1,code=ProvisionedThroughputExceededException": 2,
		"stream=s,account=000000000000,code=InternalFailure":                    2,
	} {
		if got := of(shown, "runnel_stream_records_refused_total", labels); got != want {
			t.Errorf("{%s} is %v, want %v", labels, got, want)
		}
	}
	buckets := map[float64]uint64{}
	for _, m := range shown["runnel_call_seconds"].GetMetric() {
		for _, bucket := range m.GetHistogram().GetBucket() {
			buckets[bucket.GetUpperBound()] += bucket.GetCumulativeCount()
		}
	}
	if len(buckets) != 15 || buckets[0.025] != 0 || buckets[10] < 2 { // one is +Inf
		t.Errorf("the buckets are %v", buckets)
	}
}

// subscribeOnce reads the stream's three records by an event stream.
func subscribeOnce(t *testing.T, c client) {
	t.Helper()
	described, err := c.DescribeStreamSummary(t.Context(), &kinesis.DescribeStreamSummaryInput{StreamName: aws.String("s")})
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := c.RegisterStreamConsumer(t.Context(), &kinesis.RegisterStreamConsumerInput{
		StreamARN: described.StreamDescriptionSummary.StreamARN, ConsumerName: aws.String("c"),
	})
	if err != nil {
		t.Fatal(err)
	}
	in := &kinesis.SubscribeToShardInput{
		ConsumerARN: consumer.Consumer.ConsumerARN, ShardId: aws.String("shardId-000000000000"),
		StartingPosition: &kinesistypes.StartingPosition{Type: kinesistypes.ShardIteratorTypeTrimHorizon},
	}
	out, err := c.SubscribeToShard(t.Context(), in)
	for deadline := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(deadline); {
		out, err = c.SubscribeToShard(t.Context(), in) // the consumer is being made
	}
	if err != nil {
		t.Fatal(err)
	}
	defer out.GetStream().Close()
	for records := 0; records < 3; {
		event, ok := <-out.GetStream().Events()
		if !ok {
			t.Fatal(out.GetStream().Err())
		}
		records += len(event.(*kinesistypes.SubscribeToShardEventStreamMemberSubscribeToShardEvent).Value.Records)
	}
}

// TestFaultsMakeNoLabels: a fault comes before the check that the operation exists.
func TestFaultsMakeNoLabels(t *testing.T) {
	server := runneltest.NewServer(t, runneltest.WithFaults("*:error-503"))
	watch := watchClient(server.AWSConfig(), watchProtocols["awsQuery"])
	if _, err := watch.ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{}); code(err) != "503 ServiceUnavailable" {
		t.Errorf("the fault: %v", err)
	}
	if err := server.SetFaults("PutMetricData:throttle"); err != nil {
		t.Fatal(err)
	}
	put := &cloudwatch.PutMetricDataInput{
		Namespace: aws.String("app"), MetricData: []types.MetricDatum{{MetricName: aws.String("m"), Value: aws.Float64(1)}},
	}
	if _, err := watch.PutMetricData(t.Context(), put); code(err) != "400 Throttling" {
		t.Errorf("the throttling: %v", err)
	}
	shown := scrape(t, getter{server.AWSConfig().HTTPClient}.get, server.Endpoint())
	if got := of(shown, "runnel_calls_faulted_total", "service=monitoring,result=ServiceUnavailable"); got != 1 {
		t.Errorf("%v faults, want 1", got)
	}
	if shown["runnel_calls_total"] != nil {
		t.Errorf("calls were counted: %v", shown["runnel_calls_total"])
	}
}

// TestMetricsAreForTheMachine if calls need a key, and for everybody otherwise.
func TestMetricsAreForTheMachine(t *testing.T) {
	const keys = "[a]\naws_access_key_id = A\naws_secret_access_key = s\n"
	for _, c := range []struct {
		keys       server.Credentials
		from, host string
		status     int
	}{
		{"", "192.0.2.1:1000", "example.com", 200},
		{keys, "192.0.2.1:1000", "localhost:4567", 403},
		{keys, "127.0.0.1:1000", "example.com", 403},
		{keys, "127.0.0.1:1000", "localhost:4567", 200},
		{keys, "[::1]:1000", "[::1]:4567", 200},
	} {
		s, err := server.Open(t.Context(), server.Config{Memory: true, Credentials: c.keys, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
		r.RemoteAddr, r.Host = c.from, c.host
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Code != c.status || strings.Contains(w.Body.String(), "runnel_up 1") != (c.status == 200) {
			t.Errorf("keys %v, from %s to %s: %d %.100s", c.keys != "", c.from, c.host, w.Code, w.Body)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
