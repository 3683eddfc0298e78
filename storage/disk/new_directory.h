// A directory that appears under its name whole or not at all, whenever the
// processes that write it or the machine end. It is filled under another name,
// beside the one that it will have:
//
//   const NewDirectory made("/ckpt/step-00000050", "job-3-1");
//   RETURN_IF_ERROR(made.Make());   // .../step-00000050.tmp-job-3-1
//   ... any number of processes write and sync files in made.aside() ...
//   RETURN_IF_ERROR(made.Publish());
//
// What a reader must know: `path` is whole where it is there. Where it is not
// but `path`.replaced is, that is it: the machine went down while the one took
// the other's place on a file system that cannot exchange two names in one step
// (PresentPath). All other names mean nothing.
#ifndef TROUPE_STORAGE_DISK_NEW_DIRECTORY_H_
#define TROUPE_STORAGE_DISK_NEW_DIRECTORY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace troupe {

// What follows `path` in the names of directories that are being written or
// removed, before a token; and in that of one which another replaces.
inline constexpr absl::string_view kAsideMark = ".tmp-";
inline constexpr absl::string_view kReplacedMark = ".replaced";

// Where the directory `path` is: there, or, if only that is there, under the
// name of the one that is being replaced.
std::string PresentPath(const std::string& path);

class NewDirectory {
 public:
  // All ranks that fill one directory give the same token. A slash at the end
  // of `path` does not count.
  NewDirectory(const std::string& path, absl::string_view token);

  const std::string& path() const { return path_; }
  const std::string& aside() const { return aside_; }

  // Makes the directory aside, and those above it that are missing, durably.
  // OK where it is there.
  absl::Status Make() const;

  // Gives it its name, durably. Requires that the files in it are synced;
  // directories need not be. AlreadyExists where there is a directory of the
  // name that is not empty.
  absl::Status Publish() const;

  // The same, but such a directory is replaced: it lies aside then, where it
  // means nothing, until it is discarded.
  absl::Status PublishOrReplace() const;

  // Removes the directory aside, which loses that name first: where another
  // publishes it at the same time, one of the two has it whole, and the other
  // finds none. OK where there is none.
  absl::Status Discard() const;

 private:
  absl::Status Replace() const;

  std::string path_;
  std::string aside_;
};

// Takes the names of directories, in this order and durably: none of them is
// ever seen with a part of it. What is left of each, to be removed, comes to
// `trees`. A name that is gone already is no error. Where one stays the others
// go nevertheless; the first error comes back.
absl::Status TakeNames(const std::vector<std::string>& paths,
                       std::vector<std::string>& trees);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DISK_NEW_DIRECTORY_H_
