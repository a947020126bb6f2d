package vfs

// Wrapper is a File that passes its calls on to another. Without Unwrap it would hide from
// SyncFiles that this one is a file of the operating system.
type Wrapper interface {
	File
	// Unwrap returns the wrapped file.
	Unwrap() File
}

// inner returns the file below all wrappers.
func inner(file File) File {
	for {
		w, ok := file.(Wrapper)
		if !ok {
			return file
		}
		file = w.Unwrap()
	}
}

// SyncFiles makes the data and the sizes of open files durable, as a Sync of each does. n is the
// number of files that are durable; an error is that of files[n]. Once stop is closed SyncFiles
// may return early, without an error.
//
// On Linux it syncs many files of the operating system with one call for their whole file system,
// where that is known to be as safe; names then says that the files' names are durable too. That
// costs one commit of the file system's journal and one flush of the device, where a Sync of each
// file costs as many as there are files. The trap: it also writes the unsynced data of other
// programs on that file system.
func SyncFiles(files []File, stop <-chan struct{}) (n int, names bool, err error) {
	if n, done, err := syncTogether(files); done {
		return n, err == nil, err
	}
	for i, file := range files {
		select {
		case <-stop:
			return i, false, nil
		default:
		}
		if err := file.Sync(); err != nil {
			return i, false, err
		}
	}
	return len(files), false, nil
}
