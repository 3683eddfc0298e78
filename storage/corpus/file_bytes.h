// The bytes of a file or of the standard input as they lie there, read ahead so
// that the first ones can be looked at before they are taken.
#ifndef TROUPE_STORAGE_CORPUS_FILE_BYTES_H_
#define TROUPE_STORAGE_CORPUS_FILE_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/corpus/byte_source.h"

namespace troupe {

class FileBytes final : public ByteSource {
 public:
  static absl::StatusOr<std::unique_ptr<FileBytes>> Open(
      const ByteSourceOptions& options);
  ~FileBytes() override;

  const std::string& path() const { return options_.path; }

  // What is read and not taken: `least` bytes, fewer at the end only.
  absl::StatusOr<absl::string_view> Ahead(size_t least);
  // Requires as many bytes ahead.
  void Take(size_t bytes);

  absl::StatusOr<size_t> Read(char* out, size_t bytes) override;
  uint64_t taken() const override { return taken_; }

 private:
  FileBytes(const ByteSourceOptions& options, int fd);
  // FailedPrecondition where the file is not the one of the options.
  absl::Status CheckUnchanged() const;

  const ByteSourceOptions options_;
  const int fd_;
  std::string buffer_;
  size_t begin_ = 0;  // of what is ahead, in the buffer
  uint64_t taken_ = 0;
  bool at_end_ = false;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_CORPUS_FILE_BYTES_H_
