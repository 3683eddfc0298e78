#include <zstd.h>
#include <zstd_errors.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/corpus/unpack.h"

namespace troupe {
namespace {

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

class ZstdBytes final : public ByteSource {
 public:
  explicit ZstdBytes(std::unique_ptr<FileBytes> file)
      : file_(std::move(file)), context_(ZSTD_createDCtx()) {}

  bool ready() const { return context_ != nullptr; }

  absl::StatusOr<size_t> Read(char* out, size_t bytes) override {
    ZSTD_outBuffer to = {out, bytes, 0};
    while (to.pos == 0) {
      ASSIGN_OR_RETURN(const absl::string_view ahead, file_->Ahead(1));
      if (ahead.empty() && !in_frame_) return size_t{0};
      ZSTD_inBuffer from = {ahead.data(), ahead.size(), 0};
      const size_t left = ZSTD_decompressStream(context_.get(), &to, &from);
      if (ZSTD_isError(left)) return Damaged(left);
      file_->Take(from.pos);
      in_frame_ = left != 0;
      // All that was read is unpacked, and the frame wants more.
      if (ahead.empty() && in_frame_ && to.pos == 0) {
        return Lost("the file ends within what is compressed: it is cut off");
      }
    }
    return to.pos;
  }

  uint64_t taken() const override { return file_->taken(); }

 private:
  absl::Status Damaged(size_t result) const {
    switch (ZSTD_getErrorCode(result)) {
      case ZSTD_error_frameParameter_windowTooLarge:
        return absl::InvalidArgumentError(absl::StrCat(
            file_->path(),
            ": zstd: unpacking it takes a window of more than "
            "128 MiB (zstd --long or --ultra made it); pack it again without"));
      case ZSTD_error_prefix_unknown:
        return Lost("something else follows what is compressed");
      default:
        return Lost(ZSTD_getErrorName(result));
    }
  }

  absl::Status Lost(absl::string_view what) const {
    return absl::DataLossError(absl::StrCat(
        file_->path(), ": offset ", file_->taken(), ": zstd: ", what,
        "; get the file again (zstd -t shows whether it is sound)"));
  }

  std::unique_ptr<FileBytes> file_;
  std::unique_ptr<ZSTD_DCtx, FreeContext> context_;
  bool in_frame_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ByteSource>> UnpackZstd(
    std::unique_ptr<FileBytes> file) {
  auto source = std::make_unique<ZstdBytes>(std::move(file));
  if (source->ready()) return source;
  return absl::ResourceExhaustedError("zstd: no memory");
}

}  // namespace troupe
