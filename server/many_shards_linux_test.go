package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"golang.org/x/sys/unix"

	"github.com/runnel-stream/runnel/server"
)

// TestManyShardsShareASync checks that a checkpoint over the segments of 200 shards syncs them
// together: the files of a server are the operating system's below its own wrappers.
func TestManyShardsShareASync(t *testing.T) {
	dir := t.TempDir()
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil || disk.Type != unix.EXT4_SUPER_MAGIC &&
		disk.Type != unix.XFS_SUPER_MAGIC && disk.Type != unix.TMPFS_MAGIC {
		t.Skipf("SKIP: the tests' folder is on a file system of type %x (%v): want ext4, XFS or "+
			"tmpfs", disk.Type, err)
	}
	const shards = 200
	v := serve(t, server.Config{
		Dir: dir, LogFileSize: 1 << 20,
		Streams: []server.StreamSpec{{Name: "s", Shards: shards}},
	})
	var records []types.PutRecordsRequestEntry
	for i := range 2 * shards {
		records = append(records, types.PutRecordsRequestEntry{
			Data: []byte(strings.Repeat("x", 1000)), PartitionKey: aws.String(fmt.Sprint("key-", i)),
		})
	}
	for range 3 { // more than a log file
		if _, err := v.PutRecords(t.Context(), &kinesis.PutRecordsInput{
			StreamName: aws.String("s"), Records: records,
		}); err != nil {
			t.Fatal(err)
		}
	}
	within(t, 30*time.Second, func() bool {
		use, err := v.DiskUse()
		return err == nil && use.Snapshots > 0
	})
	syncs := of(scrape(t, v.get, v.endpoint), "runnel_sync_seconds", "folder=shards,result=ok")
	if syncs < 1 || syncs > 10 {
		t.Errorf("the segments of %d shards took %v syncs, want one for all", shards, syncs)
	}
}
