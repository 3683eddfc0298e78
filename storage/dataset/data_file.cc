#include "storage/dataset/data_file.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"

namespace troupe {

absl::StatusOr<DataFile> DataFile::Open(const std::string& path) {
  ASSIGN_OR_RETURN(PosixFile file, PosixFile::Open(path, IoMode::kRead));
  ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  return DataFile(std::move(file), size);
}

absl::Status DataFile::Read(uint64_t offset, size_t bytes, char* out) const {
  const absl::Status read = file_.ReadAt(offset, bytes, out);
  if (!absl::IsOutOfRange(read)) return read;
  return absl::DataLossError(absl::StrCat(
      path(), ": offset ", offset, ": the file ends before byte ",
      offset + bytes, ", but had ", size_,
      " bytes when it was opened: it was cut or written anew meanwhile; put "
      "the file back that the job began with"));
}

std::string FirstBytes(const std::string& path, size_t count) {
  const absl::StatusOr<PosixFile> file = PosixFile::Open(path, IoMode::kRead);
  if (!file.ok()) return "";
  const absl::StatusOr<uint64_t> bytes = file->Size();
  if (!bytes.ok()) return "";
  std::string head(std::min<uint64_t>(count, *bytes), '\0');
  return file->ReadAt(0, head.size(), head.data()).ok() ? head : "";
}

}  // namespace troupe
