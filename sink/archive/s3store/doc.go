// Package s3store holds an archive's objects in an S3 bucket, below a prefix.
//
// Every promise of the archive depends on the conditional create: PutObject with the header
// If-None-Match: *. Amazon S3 has it since August 2024 (User Guide, "Prevent object overwrites with
// conditional writes"); other stores may ignore it, and Probe finds that out.
//
// A Store calls PutObject, GetObject and ListObjectsV2 below its prefix, and nothing else: the role
// needs s3:PutObject, s3:GetObject and s3:ListBucket. Without ListBucket S3 answers 403 for an
// object that is not there, and the archive cannot begin.
package s3store
