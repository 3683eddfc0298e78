// The system's calls that take a path, and the one place that knows what a path
// below a root is (roots.h): "NAME:path" is resolved from the root's open
// directory, link by link, by the kernel, and the call is made on what was
// found, so that nobody can put something else there between a check and a use.
// Other paths go to the system as they are. All of storage that a job's path
// comes to uses these.
//
// Each returns as the call that it is named after does: -1 and errno on
// failure. EXDEV: the path, or a link in it, leads out of its root.
//
// For roots: what lies elsewhere below the same root may be reached through a
// link; the links of /proc that lead to open files may not.
#ifndef TROUPE_STORAGE_DISK_PATH_CALLS_H_
#define TROUPE_STORAGE_DISK_PATH_CALLS_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace troupe {

// Close-on-exec always; continued where a signal interrupts it.
int OpenPath(const std::string& path, int flags, mode_t mode = 0644);

int StatPath(const std::string& path, struct stat* info);
int LstatPath(const std::string& path, struct stat* info);
int MkdirPath(const std::string& path, mode_t mode);
int UnlinkPath(const std::string& path);
int RmdirPath(const std::string& path);

// renameat2(2) with `flags`.
int RenamePath(const std::string& from, const std::string& to,
               unsigned int flags = 0);

// link(2): `to` is another name of the file `from`.
int LinkPath(const std::string& from, const std::string& to);

// Where a symbolic link leads, as it says.
int ReadlinkPath(const std::string& path, std::string& target);

// The names in a directory without "." and "..", in any order. A link at the
// end of the path is not followed where `follow` is false: ENOTDIR.
int ListPath(const std::string& path, std::vector<std::string>& names,
             bool follow = true);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DISK_PATH_CALLS_H_
