package itemstore

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// TestOneLostSector: a file of the length of a real one loses nothing with any one sector.
func TestOneLostSector(t *testing.T) {
	by := limitsFor(64 << 20)
	disk := vfs.NewMem()
	folder := files{disk, FolderName}
	var records []record
	for i := range 2500 { // a block and a short one
		key := id(fmt.Sprint(i))
		item := sized(fmt.Sprint(i), 400+i%300, i)
		records = append(records, record{1, newEntry(key.place(), encoded(item), Size(item))})
	}
	of, err := folder.write(t.Context(), 1, records, by)
	if err != nil {
		t.Fatal(err)
	}
	blocks := func() (text []byte, mended int) {
		t.Helper()
		err := folder.with(of, func(r *fileReader) error {
			mended = len(r.faults)
			for _, b := range r.blocks {
				part, was, err := b.read(r.file, nil)
				if err != nil {
					return fmt.Errorf("block at %d: %w", b.off, err)
				}
				if was {
					mended++
				}
				text = append(text, part...)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return text, mended
	}
	want, mended := blocks()
	if len(want) < int(by.block)+by.sector || mended != 0 {
		t.Fatalf("%d bytes, %d mended", len(want), mended)
	}
	whole := content(t, disk, folder.name(1))
	for at := 0; at < len(whole); at += by.sector {
		hurt := slices.Clone(whole)
		for i := at; i < min(at+by.sector, len(hurt)); i++ {
			hurt[i] ^= 0xff
		}
		store(t, disk, folder.name(1), hurt)
		got, mended := blocks()
		if !bytes.Equal(got, want) || mended == 0 || mended > 2 {
			t.Fatalf("without the sector at %d of %d: %d bytes, %d mended",
				at, len(whole), len(got), mended)
		}
	}
}
