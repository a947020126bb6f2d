package backup

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// archive is a Target: a tar file, packed. A file that was put twice is in it twice, and the later
// one counts, as always in a tar file.
type archive struct {
	file *os.File
	pack io.WriteCloser
	tar  *tar.Writer
}

// IsArchive reports whether a target of that name is a file.
func IsArchive(name string) bool { return packer(name) != nil }

// packer returns the function that packs a file of that name; nil if it is the name of a folder.
func packer(name string) func(w io.Writer) (io.WriteCloser, error) {
	switch {
	case strings.HasSuffix(name, ".tar.gz"), strings.HasSuffix(name, ".tgz"):
		return func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil }
	case strings.HasSuffix(name, ".tar.zst"):
		return func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }
	}
	return nil
}

// packedEndings are those of packed files, of the kinds that packer knows and of others.
var packedEndings = []string{
	".tar", ".gz", ".tgz", ".zst", ".tzst", ".xz", ".txz", ".bz2", ".tbz", ".tbz2", ".lz4", ".lzma",
	".tlz", ".zip", ".7z", ".rar",
}

// looksPacked reports whether a name looks like that of a packed file. A slash at its end makes it
// a folder's.
func looksPacked(name string) bool {
	return slices.Contains(packedEndings, strings.ToLower(filepath.Ext(name)))
}

func newArchive(file *os.File, name string) (*archive, error) {
	pack, err := packer(name)(file)
	if err != nil {
		return nil, err
	}
	return &archive{file: file, pack: pack, tar: tar.NewWriter(pack)}, nil
}

// Put implements Target.
func (a *archive) Put(name string, mode fs.FileMode, size int64, r io.Reader) error {
	err := a.tar.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: size, Mode: int64(mode.Perm()),
	})
	if err != nil {
		return err
	}
	_, err = io.CopyN(a.tar, r, size)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// finish ends the file and makes it durable. It attempts every step, and leaves the file open.
func (a *archive) finish() error {
	return errors.Join(a.tar.Close(), a.pack.Close(), a.file.Sync())
}
