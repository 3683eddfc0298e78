#include <zlib.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/corpus/unpack.h"

namespace troupe {
namespace {

constexpr int kGzipOnly = 16;  // added to the window's bits
constexpr size_t kChunkMax = 1 << 30;

class GzipBytes final : public ByteSource {
 public:
  explicit GzipBytes(std::unique_ptr<FileBytes> file)
      : file_(std::move(file)) {}
  ~GzipBytes() override { inflateEnd(&stream_); }

  absl::Status Init() {
    const int result = inflateInit2(&stream_, MAX_WBITS + kGzipOnly);
    if (result == Z_OK) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat(file_->path(), ": zlib: ", zError(result)));
  }

  absl::StatusOr<size_t> Read(char* out, size_t bytes) override {
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(std::min(bytes, kChunkMax));
    const size_t room = stream_.avail_out;
    while (stream_.avail_out == room) {
      ASSIGN_OR_RETURN(const bool more, Advance());
      if (!more) break;
    }
    return room - stream_.avail_out;
  }

  uint64_t taken() const override { return file_->taken(); }

 private:
  // Unpacks what is ahead; false at the file's end.
  absl::StatusOr<bool> Advance() {
    ASSIGN_OR_RETURN(const absl::string_view ahead, file_->Ahead(1));
    if (between_members_) {
      ASSIGN_OR_RETURN(const bool more, BeginMember());
      if (!more) return false;
      return true;
    }
    if (ahead.empty()) {
      return Damaged("the file ends within what is compressed: it is cut off");
    }
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(ahead.data()));
    stream_.avail_in = static_cast<uInt>(std::min(ahead.size(), kChunkMax));
    const size_t had = stream_.avail_in;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    file_->Take(had - stream_.avail_in);
    if (result == Z_STREAM_END) {
      between_members_ = true;
    } else if (result == Z_MEM_ERROR) {
      return absl::ResourceExhaustedError(
          absl::StrCat(file_->path(), ": zlib: no memory"));
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return Damaged(stream_.msg == nullptr ? zError(result) : stream_.msg);
    }
    return true;
  }

  absl::StatusOr<bool> BeginMember() {
    ASSIGN_OR_RETURN(const absl::string_view ahead, file_->Ahead(2));
    if (ahead.empty()) return false;
    if (ahead[0] == '\0') {
      const size_t zeros =
          std::min(ahead.find_first_not_of('\0'), ahead.size());
      padded_ = true;
      file_->Take(zeros);
      return true;
    }
    if (padded_ || CompressionOf(ahead) != Compression::kGzip) {
      return Damaged("something else follows what is compressed");
    }
    inflateReset(&stream_);
    between_members_ = false;
    return true;
  }

  absl::Status Damaged(absl::string_view what) const {
    return absl::DataLossError(absl::StrCat(
        file_->path(), ": offset ", file_->taken(), ": gzip: ", what,
        "; get the file again (gzip -t shows whether it is sound)"));
  }

  std::unique_ptr<FileBytes> file_;
  z_stream stream_ = {};
  bool between_members_ = false;
  bool padded_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ByteSource>> UnpackGzip(
    std::unique_ptr<FileBytes> file) {
  auto source = std::make_unique<GzipBytes>(std::move(file));
  RETURN_IF_ERROR(source->Init());
  return source;
}

}  // namespace troupe
