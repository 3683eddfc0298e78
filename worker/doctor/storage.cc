#include "worker/doctor/storage.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/clock.h"
#include "proto/base/status.h"
#include "storage/disk/errno_status.h"
#include "storage/disk/path_calls.h"
#include "storage/engine/make_engine.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

struct alignas(kIoAlignment) Block {
  char bytes[1 << 20];
};

// Parameters and AdamW's two moments of GPT-2 124M in f32 take 1.4 GiB.
constexpr int64_t kFreeWanted = int64_t{4} << 30;

constexpr uint64_t kNvmeTrial = uint64_t{64} << 20;

// One request from its start to its end. The process's time limit bounds it.
absl::Status Carry(IoEngine& engine, const IoRequest& request) {
  RETURN_IF_ERROR(engine.Submit(request));
  while (true) {
    const std::vector<IoCompletion> done =
        engine.Poll(absl::InfiniteDuration());
    if (!done.empty()) return done.front().status;
  }
}

fs::path NearestFolder(const std::string& dir) {
  std::error_code error;
  fs::path folder = fs::absolute(dir, error).lexically_normal();
  while (!fs::exists(folder, error) && folder.has_relative_path()) {
    folder = folder.parent_path();
  }
  return folder;
}

// Whether the root's file system is read-only.
absl::StatusOr<bool> IsReadOnly(const std::string& root) {
  const std::string path = absl::StrCat(root, ":.");
  const int directory = OpenPath(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return ErrnoStatus(errno, absl::StrCat("--root ", root));
  struct statvfs system;
  const int failed = fstatvfs(directory, &system) == 0 ? 0 : errno;
  close(directory);
  if (failed != 0) return ErrnoStatus(failed, absl::StrCat("--root ", root));
  return (system.f_flag & ST_RDONLY) != 0;
}

}  // namespace

absl::Status WriteAndReadBack(IoEngine& engine, const std::string& path) {
  const auto written = std::make_unique<Block>();
  const auto read = std::make_unique<Block>();
  for (size_t i = 0; i < sizeof(Block); ++i) {
    written->bytes[i] = static_cast<char>(i * 31 + (i >> 12));
  }
  ASSIGN_OR_RETURN(const IoFile file, engine.Open(path, IoMode::kCreate));
  unlink(path.c_str());
  RETURN_IF_ERROR(Carry(engine, {.kind = IoKind::kWrite,
                                 .file = file,
                                 .data = written->bytes,
                                 .bytes = sizeof(Block)}));
  RETURN_IF_ERROR(engine.Sync(file));
  RETURN_IF_ERROR(Carry(engine, {.kind = IoKind::kRead,
                                 .file = file,
                                 .data = read->bytes,
                                 .bytes = sizeof(Block)}));
  RETURN_IF_ERROR(engine.Close(file));
  if (std::memcmp(written->bytes, read->bytes, sizeof(Block)) != 0) {
    return absl::DataLossError(
        absl::StrCat(path, ": what was read is not what was written"));
  }
  return absl::OkStatus();
}

Finding JudgeIoUring(const absl::Status& probe) {
  if (probe.ok()) return {.text = "carries reads and writes"};
  return {.state = FindingState::kFail,
          .text = absl::StrCat(probe.message(),
                               "; the thread pool is used instead, which is "
                               "slower"),
          .advice =
              "use Linux 5.11 or later, and in a container one that "
              "allows io_uring_setup (docker: --security-opt "
              "seccomp=unconfined)"};
}

Finding JudgeStateFolder(const StateFolder& folder) {
  if (!folder.trial.ok()) {
    return {.state = FindingState::kFail,
            .text = std::string(folder.trial.message()),
            .advice = "choose another folder: troupe up --dir DIR"};
  }
  Finding finding = {.text =
                         absl::StrCat(folder.path, ": ", folder.engine,
                                      " wrote 1 MiB and ", "read it back; ",
                                      MemoryText(folder.free_bytes), " free")};
  if (folder.free_bytes < kFreeWanted) {
    finding.state = FindingState::kWarn;
    absl::StrAppend(&finding.text,
                    ", and a checkpoint of GPT-2 124M takes 1.4 GiB");
    finding.advice = "free space, or choose another folder: troupe up --dir";
  }
  return finding;
}

Finding CheckIoUring() {
  return JudgeIoUring(
      MakeIoEngine({.kind = "io_uring", .log = false}).status());
}

Finding CheckStateFolder(const std::string& dir) {
  const fs::path path = NearestFolder(dir);
  StateFolder folder = {.path = path.string()};
  const auto engine = MakeIoEngine({.log = false});
  folder.trial = engine.status();
  if (engine.ok()) {
    folder.engine = std::string((*engine)->name());
    const std::string name = absl::StrCat("troupe-doctor-", getpid());
    folder.trial = WriteAndReadBack(**engine, path / name);
  }
  std::error_code error;
  const fs::space_info space = fs::space(path, error);
  if (!error) folder.free_bytes = static_cast<int64_t>(space.available);
  return JudgeStateFolder(folder);
}

Finding JudgeNvme(const std::string& dir, absl::string_view engine,
                  const absl::StatusOr<SpillRates>& trial) {
  if (trial.ok()) {
    return {.text =
                absl::StrCat(dir, ": ", engine, " ", SpillRatesText(*trial))};
  }
  return {.state = FindingState::kFail,
          .text = std::string(trial.status().message()),
          .advice = "try another: troupe doctor --nvme DIR"};
}

Finding CheckNvmeWritable(const std::string& dir) {
  if (dir.empty()) return {.state = FindingState::kNone};
  const auto engine = MakeIoEngine({.log = false});
  absl::Status trial = engine.status();
  if (engine.ok()) {
    trial = WriteAndReadBack(**engine,
                             absl::StrCat(dir, "/troupe-fitness-", getpid()));
  }
  if (!trial.ok()) {
    return {.state = FindingState::kFail, .text = std::string(trial.message())};
  }
  std::error_code error;
  const fs::space_info space = fs::space(dir, error);
  const auto free = static_cast<int64_t>(space.available);
  if (error || free >= kNvmeFreeMin) return {};
  return {.state = FindingState::kFail,
          .text = absl::StrCat(dir, ": ", MemoryText(free),
                               " of its disk are free; a rank needs at least ",
                               MemoryText(kNvmeFreeMin))};
}

Finding CheckRoots(const std::vector<std::string>& names,
                   const std::vector<std::string>& written) {
  for (const std::string& name : names) {
    const absl::StatusOr<bool> read_only = IsReadOnly(name);
    if (!read_only.ok()) {
      return {.state = FindingState::kFail,
              .text = std::string(read_only.status().message())};
    }
    if (*read_only && std::count(written.begin(), written.end(), name) > 0) {
      return {.state = FindingState::kFail,
              .text = absl::StrCat(
                  "--root ", name,
                  ": its file system is read-only, and was not when the worker "
                  "started: EROFS")};
    }
  }
  return {};
}

std::vector<std::string> WritableRoots(const std::vector<std::string>& names) {
  std::vector<std::string> writable;
  for (const std::string& name : names) {
    if (!IsReadOnly(name).value_or(true)) writable.push_back(name);
  }
  return writable;
}

Finding CheckNvme(const std::string& dir) {
  if (dir.empty()) {
    return {.state = FindingState::kNone,
            .text = "no directory is named; --nvme DIR tries and measures one"};
  }
  const auto engine = MakeIoEngine({.log = false});
  if (!engine.ok()) return JudgeNvme(dir, "", engine.status());
  const RealClock clock;
  return JudgeNvme(dir, (*engine)->name(),
                   TrySpillDirectory(**engine, clock,
                                     {.directory = dir, .bytes = kNvmeTrial}));
}

}  // namespace troupe
