#include "proto/plan/job_differences.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "proto/base/crc32c.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Of no influence on what is learnt, or on it only before the first step.
bool IsPassedOver(absl::string_view name) {
  static const auto& names = *new absl::flat_hash_set<absl::string_view>{
      "name",
      // The checkpoint knows them better than by their paths.
      "data.tokens", "data.sources", "data.validation_blocks",
      "data.validation", "data.changed", "data.sample", "parallelism",
      "communication", "checkpoint", "memory", "metrics", "servers",
      "model.experts.load", "model.experts.load_file", "model.experts.measured",
      "model.graph",  // its text says what it is
      "model.hf", "model.initializer_range", "training.micro_batch_size",
      "training.lora.adapter", "training.stop_after", "training.validate_every",
      "training.validation_sequences"};
  return names.contains(name);
}

bool IsSet(const Message& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  return field.is_repeated() ? reflection.FieldSize(message, &field) > 0
                             : reflection.HasField(message, &field);
}

// What a field that is not set says all the same; empty: nothing, as in a job
// of an older version.
std::string WhereNotSet(const JobSpec& job, absl::string_view name) {
  if (name == "training.loss_scale") {
    return job.training().precision() == "fp16" ? "dynamic" : "";
  }
  if (name == "data.isolate_documents") return "false";
  // What no job has by default. Of how positions are stretched, the type stands
  // for the rest.
  if (name == "model.rope_scaling.type" || name == "model.sliding_window" ||
      name == "training.freeze" || name == "optimizer.groups" ||
      name == "training.lora.modules") {
    return job.model().architecture().empty() ? "" : "none";
  }
  if (name == "model.rope_scaling.mscale" ||
      name == "model.rope_scaling.mscale_all_dim") {
    return job.model().rope_scaling().type() == "yarn" ? "none" : "";
  }
  return "";
}

std::string ValueText(const Message& message, const FieldDescriptor& field) {
  using google::protobuf::TextFormat;
  std::string text;
  if (!field.is_repeated()) {
    TextFormat::PrintFieldValueToString(message, &field, -1, &text);
    // Of a file's text, enough to tell two apart.
    constexpr size_t kShownMax = 256;
    if (text.size() <= kShownMax) return text;
    return absl::StrCat("a text of ", text.size(), " characters with CRC-32C ",
                        Crc32c(text));
  }
  std::vector<std::string> values;
  const int size = message.GetReflection()->FieldSize(message, &field);
  TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  for (int i = 0; i < size; ++i) {
    printer.PrintFieldValueToString(message, &field, i, &text);
    values.push_back(text);
  }
  return absl::StrCat("[", absl::StrJoin(values, ", "), "]");
}

// A job, or a message in it.
struct Side {
  const JobSpec& job;
  const Message& message;

  Side In(const FieldDescriptor& field) const {
    return {job, message.GetReflection()->GetMessage(message, &field)};
  }
  std::string Text(const FieldDescriptor& field,
                   const std::string& name) const {
    return IsSet(message, field) ? ValueText(message, field)
                                 : WhereNotSet(job, name);
  }
};

void Compare(const std::string& prefix, const Side& there, const Side& here,
             std::vector<std::string>& differences) {
  const auto& type = *there.message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string name = absl::StrCat(prefix, field.name());
    if (IsPassedOver(name)) continue;
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
        !field.is_repeated()) {
      Compare(absl::StrCat(name, "."), there.In(field), here.In(field),
              differences);
      continue;
    }
    if (!IsSet(there.message, field) && !IsSet(here.message, field)) continue;
    const std::string of_there = there.Text(field, name);
    const std::string of_here = here.Text(field, name);
    if (of_there.empty() || of_there == of_here) continue;
    differences.push_back(absl::StrCat(name, " is ", of_there, " there, ",
                                       of_here.empty() ? "not set" : of_here,
                                       " here"));
  }
}

}  // namespace

std::vector<std::string> JobDifferences(const JobSpec& there,
                                        const JobSpec& here) {
  std::vector<std::string> differences;
  Compare("", {there, there}, {here, here}, differences);
  return differences;
}

}  // namespace troupe
