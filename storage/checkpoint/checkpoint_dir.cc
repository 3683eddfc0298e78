#include "storage/checkpoint/checkpoint_dir.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/check.h"
#include "proto/base/log.h"
#include "proto/base/status.h"
#include "storage/checkpoint/assets.h"
#include "storage/disk/directory.h"
#include "storage/disk/errno_status.h"
#include "storage/disk/new_directory.h"
#include "storage/disk/path_calls.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

// What the name of an entry in a checkpoint directory says.
struct ParsedName {
  int64_t step = 0;
  bool temporary = false;
  bool replaced = false;  // new_directory.h
};

std::optional<ParsedName> ParseName(absl::string_view name) {
  constexpr absl::string_view kPrefix = "step-";
  if (!absl::StartsWith(name, kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  size_t digits = 0;
  while (digits < name.size() && absl::ascii_isdigit(name[digits])) ++digits;
  ParsedName parsed;
  if (digits < 8 || !absl::SimpleAtoi(name.substr(0, digits), &parsed.step)) {
    return std::nullopt;
  }
  name.remove_prefix(digits);
  parsed.temporary = absl::StrContains(name, kAsideMark);
  parsed.replaced = name == kReplacedMark;
  if (!name.empty() && !parsed.temporary && !parsed.replaced) {
    return std::nullopt;
  }
  return parsed;
}

struct DirEntry {
  ParsedName name;
  std::string path;
};

// The entries that bear a checkpoint's name, by step.
absl::StatusOr<std::vector<DirEntry>> ReadDir(const std::string& dir) {
  std::vector<DirEntry> entries;
  std::vector<std::string> names;
  if (ListPath(dir, names) != 0) {
    if (errno == ENOENT) return entries;
    return ErrnoStatus(errno, absl::StrCat(dir, ": list"));
  }
  for (const std::string& name : names) {
    const std::optional<ParsedName> parsed = ParseName(name);
    if (parsed.has_value()) {
      entries.push_back({*parsed, absl::StrCat(dir, "/", name)});
    }
  }
  std::sort(
      entries.begin(), entries.end(), [](const DirEntry& a, const DirEntry& b) {
        return std::pair(a.name.step, a.path) < std::pair(b.name.step, b.path);
      });
  // What was being replaced is the checkpoint where no other took its place.
  for (DirEntry& entry : entries) {
    if (!entry.name.replaced) continue;
    entry.name.temporary =
        PresentPath(CheckpointPath(dir, entry.name.step)) != entry.path;
  }
  return entries;
}

absl::StatusOr<Manifest> CheckPart(const std::string& path, CheckDepth depth,
                                   ManifestPart part) {
  absl::StatusOr<Manifest> manifest = ReadManifest(path, part);
  if (absl::IsNotFound(manifest.status())) {
    return absl::DataLossError(
        absl::StrCat(path, "/", kManifestFile, ": is missing"));
  }
  RETURN_IF_ERROR(manifest.status());
  for (const ManifestFile& file : manifest->files) {
    RETURN_IF_ERROR(CheckFile(absl::StrCat(path, "/", file.name), file, depth));
  }
  for (const ManifestFile& asset : manifest->assets) {
    RETURN_IF_ERROR(CheckFile(AssetPath(path, asset.name), asset, depth));
  }
  return manifest;
}

// Closes the file: some file systems (NFS) say only then that they are full.
absl::Status WriteProbe(int fd, const std::string& dir) {
  constexpr char kProbe[4096] = {};
  errno = 0;
  const bool written =
      pwrite(fd, kProbe, sizeof(kProbe), 0) == ssize_t{sizeof(kProbe)};
  const int error = written ? 0 : errno != 0 ? errno : ENOSPC;
  const bool closed = close(fd) == 0;
  if (written && closed) return absl::OkStatus();
  return ErrnoStatus(written ? errno : error,
                     absl::StrCat(dir, ": write a file in it"));
}

}  // namespace

std::string CheckpointPath(const std::string& dir, int64_t step) {
  CHECK_GE(step, 0);
  return absl::StrFormat("%s/step-%08d", dir, step);
}

bool HoldsCheckpoints(const std::string& path) {
  const auto entries = ListCheckpoints(path);
  return entries.ok() && !entries->empty();
}

absl::Status PrepareCheckpointDirectory(const std::string& dir) {
  RETURN_IF_ERROR(MakeDirectories(dir));
  std::string probe;
  int fd = -1;
  do {  // of a name that nobody has
    uint64_t random = 0;
    if (getrandom(&random, sizeof(random), 0) < 0) {
      return ErrnoStatus(errno, "getrandom");
    }
    probe = absl::StrFormat("%s/.probe-%016x", dir, random);
    fd = OpenPath(probe, O_RDWR | O_CREAT | O_EXCL, 0600);
  } while (fd < 0 && errno == EEXIST);
  if (fd < 0) {
    return ErrnoStatus(errno, absl::StrCat(dir, ": make a file in it"));
  }
  absl::Status status = WriteProbe(fd, dir);
  if (UnlinkPath(probe) != 0) {
    status.Update(ErrnoStatus(errno, absl::StrCat(probe, ": remove")));
  }
  return status;
}

absl::StatusOr<std::vector<CheckpointEntry>> ListCheckpoints(
    const std::string& dir) {
  ASSIGN_OR_RETURN(const std::vector<DirEntry> entries, ReadDir(dir));
  std::vector<CheckpointEntry> checkpoints;
  for (const DirEntry& entry : entries) {
    if (entry.name.temporary) continue;
    checkpoints.push_back({entry.name.step, entry.path});
  }
  return checkpoints;
}

absl::StatusOr<Manifest> ReadCheckpoint(const std::string& path) {
  absl::StatusOr<Manifest> manifest = ReadManifest(path);
  if (!absl::IsNotFound(manifest.status())) return manifest;
  const std::string named =
      fs::path(path + "/").lexically_normal().parent_path();
  std::string newest;
  for (const std::string& folder : {named, ParentDirectory(named)}) {
    const auto there = ListCheckpoints(folder);
    if (!there.ok()) continue;
    for (const CheckpointEntry& entry : *there) {
      if (entry.path != named) newest = entry.path;
    }
    if (!newest.empty()) break;
  }
  return absl::NotFoundError(absl::StrCat(
      path, "/", kManifestFile, " is missing, so no checkpoint is there; ",
      newest.empty() ? "none lies beside it, either: name another directory"
                     : absl::StrCat("use ", newest,
                                    ", the newest beside it (older ones go "
                                    "where checkpoint.keep says so)")));
}

absl::StatusOr<Manifest> CheckCheckpoint(const std::string& path,
                                         CheckDepth depth) {
  return CheckPart(path, depth, ManifestPart::kAll);
}

absl::StatusOr<NewestCheckpoint> FindNewestComplete(
    const std::string& dir, CheckDepth depth, const DamagedCheckpoints& known) {
  ASSIGN_OR_RETURN(const std::vector<CheckpointEntry> entries,
                   ListCheckpoints(dir));
  NewestCheckpoint newest;
  for (auto it = entries.rbegin(); it != entries.rend(); ++it) {
    const auto damage = known.find(it->path);
    const absl::Status status = damage == known.end()
                                    ? CheckCheckpoint(it->path, depth).status()
                                    : absl::DataLossError(damage->second);
    if (!status.ok() && !absl::IsDataLoss(status)) return status;
    if (status.ok()) {
      newest.step = it->step;
      newest.path = it->path;
      return newest;
    }
    newest.skipped.push_back(
        absl::StrCat("skipping checkpoint ", it->path, ": ", status.message()));
    if (damage == known.end()) LogWarning(newest.skipped.back());
  }
  std::string error =
      absl::StrCat(dir, ": no complete checkpoint among ", entries.size());
  if (!newest.skipped.empty()) {
    absl::StrAppend(&error, "; ", newest.skipped.front());
  }
  return absl::NotFoundError(error);
}

absl::Status PruneCheckpoints(const PruneOptions& options,
                              std::vector<std::string>& trees) {
  CHECK_GE(options.keep, 1);
  ASSIGN_OR_RETURN(std::vector<DirEntry> entries, ReadDir(options.dir));
  const auto is_later = [&](const DirEntry& entry) {
    return entry.name.step > options.written;
  };
  entries.erase(std::remove_if(entries.begin(), entries.end(), is_later),
                entries.end());
  int whole = 0;
  std::vector<std::string> old;
  for (auto it = entries.rbegin(); it != entries.rend(); ++it) {
    if (it->name.temporary) continue;
    if (whole == options.keep) {
      old.push_back(it->path);
    } else if (CheckPart(it->path, CheckDepth::kSizes,
                         ManifestPart::kWithoutTensors)
                   .ok()) {
      ++whole;
    }
  }
  for (const DirEntry& entry : entries) {
    if (entry.name.temporary && whole > 0) trees.push_back(entry.path);
  }
  return TakeNames(old, trees);
}

}  // namespace troupe
