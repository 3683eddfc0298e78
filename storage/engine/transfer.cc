#include "storage/engine/transfer.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "storage/disk/errno_status.h"
#include "storage/disk/storage_error.h"

namespace troupe {
namespace {

// Linux moves at most 2 GiB - 4 KiB at once; this stays aligned below it.
constexpr size_t kOperationBytesMax = size_t{1} << 30;

}  // namespace

size_t FileTransfer::bytes() const {
  return std::min(request_.bytes - moved_, kOperationBytesMax);
}

bool FileTransfer::FitsDirect() const {
  return !direct_refused_ && bytes() > 0 && bytes() % kIoAlignment == 0 &&
         offset() % kIoAlignment == 0 &&
         reinterpret_cast<uintptr_t>(data()) % kIoAlignment == 0;
}

FileTransfer::Next FileTransfer::Advance(int64_t result, bool direct) {
  const Next next = Judge(result, direct);
  if (next == Next::kDone || !cancelled_) return next;
  return Fail(absl::CancelledError(absl::StrCat(What(), ": was cancelled")));
}

FileTransfer::Next FileTransfer::Judge(int64_t result, bool direct) {
  if (result > 0) {
    CHECK_LE(static_cast<size_t>(result), bytes());
    moved_ += static_cast<size_t>(result);
    return moved_ == request_.bytes ? Next::kDone : Next::kAgain;
  }
  if (result == 0) {
    if (bytes() == 0) return Next::kDone;
    if (request_.kind == IoKind::kRead) {
      return Fail(OfStorage(absl::OutOfRangeError(
          absl::StrCat(What(), ": the file ends ", bytes(),
                       " bytes before what was asked for"))));
    }
    return Fail(OfStorage(absl::DataLossError(
        absl::StrCat(What(), ": the file system wrote nothing"))));
  }
  switch (const int error = static_cast<int>(-result)) {
    case EINTR:   // a signal came first
    case EAGAIN:  // the kernel had no room to start it
    case ECANCELED:
      return Next::kAgain;
    case EINVAL:  // not every file system does O_DIRECT; go by the page cache
      if (direct) {
        direct_refused_ = true;
        return Next::kAgain;
      }
      return Fail(ErrnoStatus(error, What()));
    default:
      return Fail(ErrnoStatus(error, What()));
  }
}

FileTransfer::Next FileTransfer::Fail(absl::Status status) {
  status_ = std::move(status);
  return Next::kDone;
}

std::string FileTransfer::What() const {
  return absl::StrCat(path_, ": ",
                      request_.kind == IoKind::kRead ? "read" : "write", " of ",
                      bytes(), " bytes at offset ", offset());
}

}  // namespace troupe
