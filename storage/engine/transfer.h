// One request on its way, whichever engine carries it: what the next operation
// is, and what its result means. The rules for short transfers, interruptions,
// ends of files and refusals of O_DIRECT are here, once.
#ifndef TROUPE_STORAGE_ENGINE_TRANSFER_H_
#define TROUPE_STORAGE_ENGINE_TRANSFER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "storage/engine/engine.h"

namespace troupe {

class FileTransfer {
 public:
  FileTransfer() = default;
  // `path` is for errors.
  FileTransfer(const IoRequest& request, std::string path)
      : request_(request), path_(std::move(path)) {}

  const IoRequest& request() const { return request_; }

  // The next operation: what is still to be moved, at most 1 GiB of it.
  uint64_t offset() const { return request_.offset + moved_; }
  char* data() const { return request_.data + moved_; }
  size_t bytes() const;
  // Whether O_DIRECT would take that operation and has not refused one before.
  bool FitsDirect() const;

  enum class Next { kAgain, kDone };
  // What pread or pwrite of the operation said: the bytes moved, or -errno.
  // `direct`: whether it used O_DIRECT. kDone: status() is the request's
  // result.
  Next Advance(int64_t result, bool direct);

  // Whatever is moved by now, no other operation follows: the next result ends
  // the request, as Cancelled unless all is moved or it has failed.
  void Cancel() { cancelled_ = true; }

  // Whether O_DIRECT was refused, so that the file need not try it again.
  bool direct_refused() const { return direct_refused_; }
  const absl::Status& status() const { return status_; }

 private:
  Next Judge(int64_t result, bool direct);
  Next Fail(absl::Status status);
  std::string What() const;

  IoRequest request_;
  std::string path_;
  size_t moved_ = 0;
  bool direct_refused_ = false;
  bool cancelled_ = false;
  absl::Status status_;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_ENGINE_TRANSFER_H_
