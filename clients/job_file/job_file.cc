#include "clients/job_file/job_file.h"

#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/job_file/parse_loads.h"
#include "clients/job_file/yaml_tree.h"
#include "proto/base/file_text.h"
#include "proto/base/resume_words.h"
#include "proto/base/status.h"
#include "proto/plan/graph/graph_text.h"
#include "storage/disk/roots.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr char kSet[] = "--set ";

fs::path CurrentFolder() {
  std::error_code error;
  fs::path folder = fs::current_path(error);
  return error ? fs::path("/") : folder;
}

// "--set a.b: a.b: what" without the second path.
absl::Status SayPathOnce(const absl::Status& status, absl::string_view path) {
  const std::string once = absl::StrCat(kSet, path, ": ");
  absl::string_view message = status.message();
  if (!absl::StartsWith(message, absl::StrCat(once, path, ": "))) return status;
  message.remove_prefix(once.size() + path.size() + 2);
  return absl::Status(status.code(), absl::StrCat(once, message));
}

absl::Status ApplyOverride(const std::string& text, JobFile& job) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        kSet, text, ": expected PATH=VALUE, as in --set optimizer.lr=1e-3"));
  }
  const std::string path(
      absl::StripAsciiWhitespace(absl::string_view(text).substr(0, equals)));
  const std::string value = text.substr(equals + 1);
  const YamlSource source{absl::StrCat(kSet, path), /*has_lines=*/false};
  if (absl::StripAsciiWhitespace(value).empty()) {
    return source.Error(
        {}, "no value; write null to go back to the field's default");
  }
  ASSIGN_OR_RETURN(const YamlNode node, ParseYaml(value, source));
  return SayPathOnce(FillField(path, node, source, job.spec, job.positions),
                     path);
}

void MakeAbsolute(absl::string_view field, const std::string& folder,
                  const PositionMap& positions, std::string& path) {
  if (path.empty() || fs::path(path).is_absolute()) return;
  if (!RootName(path).empty()) return;  // of the workers
  const auto position = positions.find(std::string(field));
  const bool from_override =
      position != positions.end() && absl::StartsWith(position->second, kSet);
  const fs::path base = from_override ? CurrentFolder() : fs::path(folder);
  path = (base / path).lexically_normal().string();
}

void MakeDataAbsolute(const std::string& folder, const PositionMap& positions,
                      DataSpec& data) {
  MakeAbsolute("data.tokens", folder, positions, *data.mutable_tokens());
  for (int i = 0; i < data.sources_size(); ++i) {
    MakeAbsolute(absl::StrCat("data.sources[", i, "].tokens"), folder,
                 positions, *data.mutable_sources(i)->mutable_tokens());
  }
  if (!data.has_validation()) return;
  MakeAbsolute("data.validation", folder, positions,
               *data.mutable_validation());
}

void MakePathsAbsolute(const std::string& folder, JobFile& job) {
  const PositionMap& positions = job.positions;
  if (job.spec.has_data()) {
    MakeDataAbsolute(folder, positions, *job.spec.mutable_data());
  }
  if (job.spec.model().has_hf()) {
    MakeAbsolute("model.hf", folder, positions,
                 *job.spec.mutable_model()->mutable_hf());
  }
  if (job.spec.model().has_graph()) {
    MakeAbsolute("model.graph", folder, positions,
                 *job.spec.mutable_model()->mutable_graph());
  }
  if (job.spec.model().experts().has_load_file()) {
    MakeAbsolute(
        "model.experts.load_file", folder, positions,
        *job.spec.mutable_model()->mutable_experts()->mutable_load_file());
  }
  if (job.spec.training().lora().has_adapter()) {
    MakeAbsolute(
        "training.lora.adapter", folder, positions,
        *job.spec.mutable_training()->mutable_lora()->mutable_adapter());
  }
  if (job.spec.metrics().has_directory()) {
    MakeAbsolute("metrics.directory", folder, positions,
                 *job.spec.mutable_metrics()->mutable_directory());
  }
  if (job.spec.metrics().has_tensorboard()) {
    MakeAbsolute("metrics.tensorboard", folder, positions,
                 *job.spec.mutable_metrics()->mutable_tensorboard());
  }
  if (!job.spec.has_checkpoint()) return;
  CheckpointSpec& checkpoint = *job.spec.mutable_checkpoint();
  if (checkpoint.has_directory()) {
    MakeAbsolute("checkpoint.directory", folder, positions,
                 *checkpoint.mutable_directory());
  }
  if (checkpoint.has_resume() && !IsResumeWord(checkpoint.resume())) {
    MakeAbsolute("checkpoint.resume", folder, positions,
                 *checkpoint.mutable_resume());
  }
}

// A job carries the text of its model's graph.
absl::Status ReadGraph(JobFile& job) {
  ModelSpec& model = *job.spec.mutable_model();
  if (!model.has_graph() || model.has_graph_text()) return absl::OkStatus();
  const auto error = [&](absl::string_view what) {
    return job.Locate(absl::InvalidArgumentError(
        absl::StrCat("model.graph: ", model.graph(), ": ", what)));
  };
  std::error_code code;
  if (!fs::is_regular_file(model.graph(), code)) {
    return error("is no file; give one of units and ops (docs/graph.md)");
  }
  // One byte more than is accepted.
  absl::optional<std::string> text =
      FileText(model.graph(), kGraphBytesMax + 1);
  if (!text.has_value()) return error("cannot be read");
  if (static_cast<int64_t>(text->size()) > kGraphBytesMax) {
    return error(absl::StrCat("has more than ", kGraphBytesMax,
                              " bytes; use `repeat` for equal units"));
  }
  if (text->empty() || !IsUtf8(*text)) {
    return error("is empty, or no UTF-8 text");
  }
  model.set_graph_text(*std::move(text));
  return absl::OkStatus();
}

// And how its experts were loaded.
absl::Status ReadLoads(JobFile& job) {
  const ExpertsSpec& experts = job.spec.model().experts();
  if (!experts.has_load_file() || !experts.measured().empty()) {
    return absl::OkStatus();
  }
  const auto error = [&](absl::string_view what) {
    return job.Locate(absl::InvalidArgumentError(absl::StrCat(
        "model.experts.load_file: ", experts.load_file(), ": ", what)));
  };
  std::error_code code;
  if (!fs::is_regular_file(experts.load_file(), code)) {
    return error("is no file; save what /api/v1/jobs/ID/experts answers");
  }
  // One byte more than is accepted.
  const absl::optional<std::string> text =
      FileText(experts.load_file(), kLoadBytesMax + 1);
  if (!text.has_value()) return error("cannot be read");
  if (text->size() > kLoadBytesMax) {
    return error(absl::StrCat("has more than ", kLoadBytesMax, " bytes"));
  }
  absl::StatusOr<std::vector<MeasuredLoad>> loads = ParseLoads(*text);
  if (!loads.ok()) return error(loads.status().message());
  for (MeasuredLoad& load : *loads) {
    *job.spec.mutable_model()->mutable_experts()->add_measured() =
        std::move(load);
  }
  return absl::OkStatus();
}

// The field's path at the front of a scheduler's message; empty where there is
// none.
std::string LeadingPath(absl::string_view message) {
  size_t length = 0;
  while (length < message.size() &&
         (absl::ascii_isalnum(message[length]) ||
          absl::StrContains("_.[]", message.substr(length, 1)))) {
    ++length;
  }
  const absl::string_view path = message.substr(0, length);
  const absl::string_view section = path.substr(0, path.find_first_of(".["));
  const bool ends_path = length < message.size() &&
                         (message[length] == ':' || message[length] == ' ');
  if (!ends_path ||
      JobSpec::descriptor()->FindFieldByName(std::string(section)) == nullptr) {
    return "";
  }
  // "data loader failed" begins with a word, not with a path.
  if (message[length] == ' ' && section == path) return "";
  return std::string(path);
}

}  // namespace

absl::Status JobFile::Locate(const absl::Status& status) const {
  if (status.code() != absl::StatusCode::kInvalidArgument) return status;
  absl::string_view message = status.message();
  const std::string path = LeadingPath(message);
  if (path.empty()) return status;
  std::string nearest = path;
  while (!nearest.empty() && positions.count(nearest) == 0) {
    const size_t cut = nearest.find_last_of(".[");
    nearest = cut == std::string::npos ? "" : nearest.substr(0, cut);
  }
  const auto position = positions.find(nearest);
  const std::string where =
      position == positions.end() ? this->path : position->second;
  if (where == absl::StrCat(kSet, path)) {  // says the path itself
    message.remove_prefix(path.size());
    while (!message.empty() && (message[0] == ':' || message[0] == ' ')) {
      message.remove_prefix(1);
    }
  }
  return absl::Status(status.code(), absl::StrCat(where, ": ", message));
}

absl::StatusOr<JobFile> ParseJob(const JobText& job) {
  const YamlSource source{job.name};
  ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(job.text, source));
  if (root.kind == YamlNode::Kind::kNull) {
    return source.Error(root, "the job file is empty");
  }
  JobFile file;
  file.path = job.name;
  RETURN_IF_ERROR(FillMessage(root, source, file.spec, file.positions));
  for (const std::string& text : job.overrides) {
    RETURN_IF_ERROR(ApplyOverride(text, file));
  }
  MakePathsAbsolute(job.folder, file);
  return file;
}

absl::StatusOr<JobFile> LoadJobFile(const JobFileOptions& options) {
  std::error_code error;
  if (fs::is_directory(options.path, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.path, ": is a folder; expected a job file"));
  }
  // One byte more than is accepted.
  absl::optional<std::string> text = FileText(options.path, kYamlBytesMax + 1);
  if (!text.has_value()) {
    return absl::NotFoundError(
        absl::StrCat(options.path, ": cannot open the job file; is it there?"));
  }
  const fs::path folder =
      (CurrentFolder() / options.path).lexically_normal().parent_path();
  ASSIGN_OR_RETURN(JobFile job, ParseJob({.name = options.path,
                                          .folder = folder.string(),
                                          .text = *std::move(text),
                                          .overrides = options.overrides}));
  if (job.spec.has_model()) {
    RETURN_IF_ERROR(ReadGraph(job));
    RETURN_IF_ERROR(ReadLoads(job));
  }
  return job;
}

}  // namespace troupe
