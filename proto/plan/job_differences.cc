#include "proto/plan/job_differences.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Of no influence on what is learnt, or on it only before the first step.
bool IsPassedOver(absl::string_view name) {
  static const auto& names = *new absl::flat_hash_set<absl::string_view>{
      "name",
      "data.tokens",  // the checkpoint knows them better than by their path
      "data.changed",
      "parallelism",
      "checkpoint",
      "memory",
      "model.hf",
      "model.initializer_range",
      "training.micro_batch_size",
      "training.stop_after",
      "training.validate_every",
      "training.validation_sequences"};
  return names.contains(name);
}

bool IsSet(const Message& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  return field.is_repeated() ? reflection.FieldSize(message, &field) > 0
                             : reflection.HasField(message, &field);
}

std::string ValueText(const Message& message, const FieldDescriptor& field) {
  if (!IsSet(message, field)) return "not set";
  using google::protobuf::TextFormat;
  std::string text;
  if (!field.is_repeated()) {
    TextFormat::PrintFieldValueToString(message, &field, -1, &text);
    return text;
  }
  std::vector<std::string> values;
  const int size = message.GetReflection()->FieldSize(message, &field);
  for (int i = 0; i < size; ++i) {
    TextFormat::PrintFieldValueToString(message, &field, i, &text);
    values.push_back(text);
  }
  return absl::StrCat("[", absl::StrJoin(values, ", "), "]");
}

struct Pair {
  const Message& there;
  const Message& here;
};

void Compare(const std::string& prefix, const Pair& pair,
             std::vector<std::string>& differences) {
  const auto& type = *pair.there.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string name = absl::StrCat(prefix, field.name());
    if (IsPassedOver(name) || !IsSet(pair.there, field)) continue;
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      const auto& reflection = *pair.there.GetReflection();
      Compare(absl::StrCat(name, "."),
              {.there = reflection.GetMessage(pair.there, &field),
               .here = reflection.GetMessage(pair.here, &field)},
              differences);
      continue;
    }
    const std::string there = ValueText(pair.there, field);
    const std::string here = ValueText(pair.here, field);
    if (there == here) continue;
    differences.push_back(
        absl::StrCat(name, " is ", there, " there, ", here, " here"));
  }
}

}  // namespace

std::vector<std::string> JobDifferences(const JobSpec& there,
                                        const JobSpec& here) {
  std::vector<std::string> differences;
  Compare("", {.there = there, .here = here}, differences);
  return differences;
}

}  // namespace troupe
