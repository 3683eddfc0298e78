#include "storage/spill/spill_preflight.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/status.h"
#include "storage/disk/errno_status.h"
#include "storage/disk/file_lock.h"
#include "storage/spill/spill_file.h"
#include "storage/spill/spill_queue.h"
#include "storage/tier/allocator.h"

namespace troupe {
namespace {

constexpr uint64_t kTrialBytes = uint64_t{64} << 20;
constexpr uint64_t kPieceBytes = 1 << 20;
constexpr int kLatencies = 32;
constexpr char kTurnFile[] = "troupe-spill-trial";

// The trial of one directory.
class Trial {
 public:
  static absl::StatusOr<std::unique_ptr<Trial>> Make(
      IoEngine& engine, const Clock& clock,
      const SpillPreflightOptions& options) {
    const uint64_t bytes = std::min(kTrialBytes, options.bytes);
    // Room for all, and checksums, which are memory, of what is tried.
    ASSIGN_OR_RETURN(std::unique_ptr<SpillFile> file,
                     SpillFile::Create({.directory = options.directory,
                                        .bytes = bytes,
                                        .room = options.bytes,
                                        .owner = {"preflight"}}));
    ASSIGN_OR_RETURN(std::unique_ptr<SpillQueue> queue,
                     SpillQueue::Open(*file, engine));
    HostAllocator allocator;
    ASSIGN_OR_RETURN(void* const data, allocator.Allocate(bytes));
    return std::unique_ptr<Trial>(new Trial(engine, clock, std::move(file),
                                            std::move(queue),
                                            static_cast<char*>(data), bytes));
  }

  ~Trial() {
    queue_.reset();
    engine_.ForgetMemory(data_);
    HostAllocator().Free(data_, bytes_);
  }

  absl::StatusOr<SpillRates> Run(absl::Duration each) {
    // The first writes make blocks of the file out of its room.
    RETURN_IF_ERROR(Pass(IoKind::kWrite, kPieceBytes));
    SpillRates rates;
    ASSIGN_OR_RETURN(rates.write_bytes_per_second, Rate(IoKind::kWrite, each));
    ASSIGN_OR_RETURN(rates.read_bytes_per_second, Rate(IoKind::kRead, each));
    ASSIGN_OR_RETURN(rates.write_latency_us, LatencyUs(IoKind::kWrite));
    ASSIGN_OR_RETURN(rates.read_latency_us, LatencyUs(IoKind::kRead));
    return rates;
  }

 private:
  Trial(IoEngine& engine, const Clock& clock, std::unique_ptr<SpillFile> file,
        std::unique_ptr<SpillQueue> queue, char* data, uint64_t bytes)
      : engine_(engine),
        clock_(clock),
        file_(std::move(file)),
        queue_(std::move(queue)),
        data_(data),
        bytes_(bytes) {
    // Bytes that a disk cannot compress.
    std::mt19937_64 random;
    uint64_t* const words = reinterpret_cast<uint64_t*>(data);
    std::generate(words, words + bytes / sizeof(uint64_t), random);
    engine_.RegisterMemory(data, bytes).IgnoreError();  // then it is slower
  }

  absl::Status Start(IoKind kind, SpillRange range) {
    return queue_->Start(
        kind, range, data_ + range.offset,
        [this](const absl::Status& status) { error_.Update(status); });
  }

  // All that is tried, in requests of `bytes` bytes.
  absl::Status Pass(IoKind kind, uint64_t bytes) {
    for (uint64_t at = 0; at < bytes_; at += bytes) {
      RETURN_IF_ERROR(Start(kind, {at, std::min(bytes, bytes_ - at)}));
    }
    queue_->Drain();
    return error_;
  }

  absl::StatusOr<double> Rate(IoKind kind, absl::Duration each) {
    const int64_t begin = clock_.MonotonicNanos();
    uint64_t moved = 0;
    int64_t took = 0;
    do {
      RETURN_IF_ERROR(Pass(kind, kPieceBytes));
      moved += bytes_;
      took = std::max<int64_t>(1, clock_.MonotonicNanos() - begin);
    } while (took < absl::ToInt64Nanoseconds(each));
    return static_cast<double>(moved) / static_cast<double>(took) * 1e9;
  }

  absl::StatusOr<double> LatencyUs(IoKind kind) {
    std::vector<double> times;
    const uint64_t blocks = bytes_ / kIoAlignment;
    for (int i = 0; i < kLatencies; ++i) {
      const int64_t begin = clock_.MonotonicNanos();
      const uint64_t block = i * 7919 % blocks;
      RETURN_IF_ERROR(Start(kind, {block * kIoAlignment, kIoAlignment}));
      queue_->Drain();
      RETURN_IF_ERROR(error_);
      times.push_back(static_cast<double>(clock_.MonotonicNanos() - begin));
    }
    const auto median = times.begin() + kLatencies / 2;
    std::nth_element(times.begin(), median, times.end());
    return *median * 1e-3;
  }

  IoEngine& engine_;
  const Clock& clock_;
  const std::unique_ptr<SpillFile> file_;
  std::unique_ptr<SpillQueue> queue_;
  char* const data_;
  const uint64_t bytes_;
  absl::Status error_;
};

std::string NameOfMemory(int64_t type) {
  switch (type) {
    case TMPFS_MAGIC:
      return "tmpfs";
    case RAMFS_MAGIC:
      return "ramfs";
    case HUGETLBFS_MAGIC:
      return "hugetlbfs";
    default:
      return "";
  }
}

}  // namespace

std::string SpillRatesText(const SpillRates& rates) {
  return absl::StrFormat(
      "writes %.2f GB/s, reads %.2f GB/s, 4 KiB in %.0f us and %.0f us",
      rates.write_bytes_per_second * 1e-9, rates.read_bytes_per_second * 1e-9,
      rates.write_latency_us, rates.read_latency_us);
}

absl::StatusOr<SpillFileSystem> ReadSpillFileSystem(
    const std::string& directory) {
  struct stat info;
  if (stat(directory.c_str(), &info) != 0) {
    const absl::Status status = ErrnoStatus(errno, directory);
    if (!absl::IsNotFound(status)) return status;
    return absl::NotFoundError(
        absl::StrCat(status.message(), "; make it, on the disk that is meant"));
  }
  if (!S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat(directory, ": is not a directory"));
  }
  struct statfs kind;
  struct statvfs flags;
  if (statfs(directory.c_str(), &kind) != 0 ||
      statvfs(directory.c_str(), &flags) != 0) {
    return ErrnoStatus(errno, absl::StrCat(directory, ": statfs"));
  }
  return SpillFileSystem{.directory = directory,
                         .memory = NameOfMemory(kind.f_type),
                         .read_only = (flags.f_flag & ST_RDONLY) != 0};
}

absl::Status JudgeSpillFileSystem(const SpillFileSystem& found) {
  if (!found.memory.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        found.directory, ": is ", found.memory,
        ", which is memory and no disk; name a directory on a disk"));
  }
  if (found.read_only) {
    return absl::PermissionDeniedError(absl::StrCat(
        found.directory, ": the file system is read-only; name another"));
  }
  return absl::OkStatus();
}

absl::StatusOr<SpillRates> TrySpillDirectory(
    IoEngine& engine, const Clock& clock,
    const SpillPreflightOptions& options) {
  ASSIGN_OR_RETURN(const SpillFileSystem found,
                   ReadSpillFileSystem(options.directory));
  RETURN_IF_ERROR(JudgeSpillFileSystem(found));
  ASSIGN_OR_RETURN(
      const FileLock turn,
      FileLock::Await(std::filesystem::path(options.directory) / kTurnFile,
                      ThisProcessName()));
  ASSIGN_OR_RETURN(const std::unique_ptr<Trial> trial,
                   Trial::Make(engine, clock, options));
  return trial->Run(options.each);
}

}  // namespace troupe
