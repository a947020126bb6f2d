package localca

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// The files of an authority's folder: one for clients, and one with both the key and the
// certificate, so that the two always belong together.
const (
	PublicFile = "ca.pem"
	SecretFile = "ca-key.pem"
)

// renewBefore is the shortest remaining life of a kept authority; below it, a new authority
// replaces it.
const renewBefore = 30 * 24 * time.Hour

// Open returns the authority of a folder. If there is none, or it ends within 30 days, Open makes
// a new one and keeps it there. It makes the folder if necessary.
func Open(dir string) (*Authority, error) {
	a, err := open(dir)
	if err != nil {
		return nil, fmt.Errorf("the certificate authority in %s: %w", dir, err)
	}
	return a, nil
}

func open(dir string) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	secret := filepath.Join(dir, SecretFile)
	a, err := read(secret)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		a, err = create(secret, os.Link)
	case err == nil && time.Now().After(a.certificate.NotAfter.Add(-renewBefore)):
		a, err = create(secret, os.Rename)
	}
	if err != nil {
		return nil, err
	}
	return a, a.publish(filepath.Join(dir, PublicFile))
}

func read(secret string) (*Authority, error) {
	text, err := os.ReadFile(secret)
	if err != nil {
		return nil, err
	}
	a, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; remove it to have a new one made", secret, err)
	}
	return a, nil
}

// create makes an authority and puts its complete file in place by os.Link or os.Rename. Link
// fails if another process was faster; create then takes the other's authority.
func create(secret string, place func(from, to string) error) (*Authority, error) {
	a, err := New()
	if err != nil {
		return nil, err
	}
	text, err := a.secretPEM()
	if err != nil {
		return nil, err
	}
	draft, err := writeDraft(secret, text) // readable for its owner alone
	if err != nil {
		return nil, err
	}
	err = place(draft, secret)
	if removed := os.Remove(draft); !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	if errors.Is(err, fs.ErrExist) {
		return read(secret)
	}
	return a, err
}

// publish writes the certificate to the documented place for clients.
func (a *Authority) publish(public string) error {
	text := a.PEM()
	if there, err := os.ReadFile(public); err == nil && bytes.Equal(there, text) {
		return nil
	}
	draft, err := writeDraft(public, text)
	if err != nil {
		return err
	}
	return errors.Join(os.Chmod(draft, 0o644), os.Rename(draft, public))
}

// writeDraft writes a file next to name that only its owner can read, and syncs it.
func writeDraft(name string, text []byte) (draft string, err error) {
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*") // of mode 0600
	if err != nil {
		return "", err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}
