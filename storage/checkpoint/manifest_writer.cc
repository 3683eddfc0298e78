#include "storage/checkpoint/manifest_writer.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "proto/base/crc32c.h"
#include "proto/base/status.h"
#include "storage/checkpoint/manifest_json.h"
#include "storage/checkpoint/strict_json.h"

namespace troupe {
namespace {

using nlohmann::json;

constexpr size_t kPieceBytes = size_t{1} << 20;

std::string Text(const std::string& value) { return FormatJson(json(value)); }

std::string FileLines(std::vector<ManifestFile> files) {
  std::sort(files.begin(), files.end(),
            [](const ManifestFile& a, const ManifestFile& b) {
              return a.name < b.name;
            });
  return absl::StrJoin(
      files, ",\n", [](std::string* out, const ManifestFile& file) {
        absl::StrAppend(out, "  ", FormatJson(FileToJson(file)));
      });
}

}  // namespace

absl::Status ManifestWriter::Begin(const Manifest& manifest) {
  return Write(absl::StrCat(
      "{\n\"format_version\": ", kManifestVersion,
      ",\n\"job_name\": ", Text(manifest.job_name),
      manifest.run_id.empty()
          ? ""
          : absl::StrCat(",\n\"run_id\": ", Text(manifest.run_id)),
      ",\n\"step\": ", manifest.step, ",\n\"samples_consumed\": ",
      manifest.samples_consumed, ",\n\"seed\": ", manifest.seed,
      ",\n\"plan_fingerprint\": ", Text(manifest.plan_fingerprint),
      ",\n\"job\": ", Text(manifest.job), ",\n\"tokenizer\": ",
      Text(manifest.tokenizer), ",\n\"data\": ", Text(manifest.data),
      manifest.data_unchecked ? ",\n\"data_unchecked\": true" : "",
      manifest.loss_scale.scale > 0
          ? absl::StrCat(",\n\"loss_scale\": ",
                         FormatJson(LossScaleToJson(manifest.loss_scale)))
          : "",
      ",\n\"created\": \"",
      absl::FormatTime(absl::RFC3339_full, manifest.created,
                       absl::UTCTimeZone()),
      "\",\n\"tensors\": [\n"));
}

absl::Status ManifestWriter::Add(ManifestTensor tensor) {
  std::sort(tensor.shards.begin(), tensor.shards.end(),
            [](const ManifestShard& a, const ManifestShard& b) {
              return std::tie(a.box.start, a.file, a.key) <
                     std::tie(b.box.start, b.file, b.key);
            });
  return Write(absl::StrCat(std::exchange(is_first_, false) ? "  " : ",\n  ",
                            FormatJson(TensorToJson(tensor))));
}

absl::Status ManifestWriter::End(std::vector<ManifestFile> files,
                                 std::vector<ManifestFile> assets) {
  RETURN_IF_ERROR(Write(absl::StrCat(
      "\n],\n\"files\": [\n", FileLines(std::move(files)),
      "\n],\n\"assets\": [\n", FileLines(std::move(assets)), "\n],\n")));
  RETURN_IF_ERROR(Flush());
  const std::string crc = FormatCrc(crc32c_);
  RETURN_IF_ERROR(Write(absl::StrCat(kChecksumLine, " \"", crc, "\"\n}\n")));
  return Flush();
}

absl::Status ManifestWriter::Write(absl::string_view text) {
  absl::StrAppend(&text_, text);
  return text_.size() < kPieceBytes ? absl::OkStatus() : Flush();
}

absl::Status ManifestWriter::Flush() {
  RETURN_IF_ERROR(sink_(text_));
  crc32c_ = ExtendCrc32c(crc32c_, text_);
  text_.clear();
  return absl::OkStatus();
}

}  // namespace troupe
