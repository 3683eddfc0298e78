#include "storage/spill/spill_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "proto/base/one_line.h"
#include "proto/base/status.h"
#include "storage/engine/posix_file.h"
#include "storage/spill/reserved_file.h"
#include "storage/spill/stale_spill_files.h"

namespace troupe {
namespace {

// Of a block. 0 stands for nothing, so a sum that is 0 counts as 1.
uint32_t SumOf(absl::string_view block) {
  return std::max<uint32_t>(1, Crc32c(block));
}

uint32_t SumOfZeros() {
  static const uint32_t sum = SumOf(std::string(kIoAlignment, '\0'));
  return sum;
}

uint64_t FirstBlock(SpillRange range) { return range.offset / kIoAlignment; }
uint64_t EndBlock(SpillRange range) { return range.end() / kIoAlignment; }

}  // namespace

absl::StatusOr<std::unique_ptr<SpillFile>> SpillFile::Create(
    const SpillFileOptions& options) {
  if (options.bytes == 0 || options.bytes % kIoAlignment != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.directory, ": a tier of ", options.bytes,
                     " bytes; it has to be a multiple of ", kIoAlignment));
  }
  const uint64_t blocks = options.bytes / kIoAlignment;
  CHECK(options.sums.empty() || options.sums.size() >= blocks)
      << options.sums.size() << " checksums of " << blocks << " blocks";
  RETURN_IF_ERROR(RemoveStaleSpillFiles(options.directory).status());
  std::string header = SpillHeader(options.owner);
  ASSIGN_OR_RETURN(
      ReservedFile made,
      ReserveFile(options.directory, header,
                  kSpillHeaderBytes + std::max(options.bytes, options.room)));
  return std::unique_ptr<SpillFile>(new SpillFile(
      options, std::move(header), std::move(made.lock), std::move(made.path)));
}

SpillFile::SpillFile(const SpillFileOptions& options, std::string header,
                     FileLock lock, std::string path)
    : bytes_(options.bytes),
      header_(std::move(header)),
      path_(std::move(path)),
      lock_(std::move(lock)),
      own_sums_(options.sums.empty() ? bytes_ / kIoAlignment : 0),
      sums_(options.sums.empty() ? absl::MakeSpan(own_sums_) : options.sums) {
  std::fill(sums_.begin(), sums_.end(), SumOfZeros());
}

absl::Status SpillFile::CheckRange(SpillRange range, const char* data) const {
  const bool aligned = range.offset % kIoAlignment == 0 &&
                       range.bytes % kIoAlignment == 0 &&
                       reinterpret_cast<uintptr_t>(data) % kIoAlignment == 0;
  const bool inside = range.bytes > 0 && range.bytes <= bytes_ &&
                      range.offset <= bytes_ - range.bytes;
  if (aligned && inside) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path_, ": ", range.bytes, " bytes at ", range.offset,
      aligned ? " do not lie in a tier of "
              : ", or their memory, are not aligned to 4096, in a tier of ",
      bytes_));
}

absl::Status SpillFile::CheckReadable(SpillRange range) const {
  for (uint64_t block = FirstBlock(range); block < EndBlock(range); ++block) {
    if (sums_[block] != 0) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": ", range.bytes, " bytes at ", range.offset,
                     " are to be read, but a write of those at ",
                     block * kIoAlignment, " has failed"));
  }
  return absl::OkStatus();
}

void SpillFile::Expect(SpillRange range, const char* data) {
  for (uint64_t block = FirstBlock(range); block < EndBlock(range); ++block) {
    sums_[block] = SumOf({data, kIoAlignment});
    data += kIoAlignment;
  }
}

void SpillFile::ExpectNothing(SpillRange range) {
  std::fill(sums_.begin() + FirstBlock(range), sums_.begin() + EndBlock(range),
            0);
}

bool SpillFile::IsZero(SpillRange range) const {
  return std::all_of(sums_.begin() + FirstBlock(range),
                     sums_.begin() + EndBlock(range),
                     [](uint32_t sum) { return sum == SumOfZeros(); });
}

absl::Status SpillFile::Verify(SpillRange range, const char* data) const {
  for (uint64_t block = FirstBlock(range); block < EndBlock(range); ++block) {
    const uint32_t sum = SumOf({data, kIoAlignment});
    if (sum != sums_[block]) return Changed(block, sum);
    data += kIoAlignment;
  }
  return absl::OkStatus();
}

absl::Status SpillFile::Changed(uint64_t block, uint32_t crc32c) const {
  const uint64_t begin = kSpillHeaderBytes + block * kIoAlignment;
  std::string text = absl::StrFormat(
      "%s: bytes %d to %d: CRC-32C is %08x, of what was written it is %08x: "
      "somebody changed the file, or the disk lost a write; see who writes "
      "there, and the kernel's log",
      path_, begin, begin + kIoAlignment, crc32c, sums_[block]);
  const absl::StatusOr<PosixFile> file =
      PosixFile::Open(path_, IoMode::kReadCached);
  std::string first(header_.size(), '\0');
  if (file.ok() && file->ReadAt(0, first.size(), first.data()).ok() &&
      first != header_) {
    absl::StrAppend(&text, "; it now begins with: ", OneLine(first, 160));
  }
  return absl::DataLossError(text);
}

}  // namespace troupe
