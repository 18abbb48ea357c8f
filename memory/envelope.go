package memory

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// A snapshot file has this format:
//
//	magic    8 bytes
//	version  4 bytes, little-endian
//	length   8 bytes, little-endian: of the body
//	body     see body.go
//	checksum 32 bytes: SHA-256 of everything before it
const (
	snapshotMagic = "WEIRMEM\n"
	// snapshotVersion is the version that is written. Version 1, without usage and audit, and
	// version 2, without a configuration, are read too.
	snapshotVersion = 3

	headerLen = len(snapshotMagic) + 4 + 8
)

// beginEnvelope appends a header with a length of 0, which sealEnvelope sets. The buffer must be
// empty.
func beginEnvelope(buffer []byte) []byte {
	buffer = append(buffer, snapshotMagic...)
	buffer = binary.LittleEndian.AppendUint32(buffer, snapshotVersion)
	return binary.LittleEndian.AppendUint64(buffer, 0)
}

// sealEnvelope sets the length and appends the checksum.
func sealEnvelope(buffer []byte) []byte {
	binary.LittleEndian.PutUint64(buffer[headerLen-8:], uint64(len(buffer)-headerLen))
	sum := sha256.Sum256(buffer)
	return append(buffer, sum[:]...)
}

// openEnvelope returns the body of a file and its version, or an error that says what is wrong with
// the file, as the end of a sentence.
func openEnvelope(data []byte) (body []byte, version uint32, err error) {
	magic := data[:min(len(data), len(snapshotMagic))]
	if !bytes.HasPrefix([]byte(snapshotMagic), magic) {
		return nil, 0, errors.New("is not a snapshot of this store")
	}
	if len(data) < headerLen {
		return nil, 0, fmt.Errorf("is truncated: it has only %d bytes", len(data))
	}
	version = binary.LittleEndian.Uint32(data[len(snapshotMagic):])
	if version < 1 || version > snapshotVersion {
		return nil, 0, fmt.Errorf("has format version %d, and this program knows only those up to %d",
			version, snapshotVersion)
	}
	length := binary.LittleEndian.Uint64(data[headerLen-8:])
	switch rest := uint64(len(data) - headerLen); {
	case rest < sha256.Size || length > rest-sha256.Size:
		return nil, 0, fmt.Errorf("is truncated: it has only %d bytes", len(data))
	case length < rest-sha256.Size:
		return nil, 0, fmt.Errorf("is damaged: %d bytes follow its end", rest-sha256.Size-length)
	}
	end := len(data) - sha256.Size
	if sha256.Sum256(data[:end]) != [sha256.Size]byte(data[end:]) {
		return nil, 0, errors.New("is damaged: its checksum is wrong")
	}
	return data[headerLen:end], version, nil
}

// replaceFile replaces the content of a file, so that after a crash the file has either the old
// content or the new. It writes a temporary file, syncs it, renames it over the file, and syncs the
// folder, because a rename alone may be lost.
func replaceFile(file string, data []byte) error {
	temporary := file + ".tmp"
	if err := writeSynced(temporary, data); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	if err := os.Rename(temporary, file); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return syncFolder(filepath.Dir(file))
}

func writeSynced(file string, data []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
