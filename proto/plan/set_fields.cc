#include "proto/plan/set_fields.h"

#include <functional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/unknown_field_set.h"
#include "proto/base/one_line.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/protocol_version.h"

namespace troupe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr size_t kPathBytesMax = 200;

std::string Join(const std::string& path, absl::string_view name) {
  return path.empty() ? std::string(name) : absl::StrCat(path, ".", name);
}

// Each message within this one, itself first, with its path.
absl::Status ForEachMessage(
    const Message& message, const std::string& path,
    const std::function<absl::Status(const Message&, const std::string&)>&
        look) {
  RETURN_IF_ERROR(look(message, path));
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const std::string inner = Join(path, field->name());
    if (!field->is_repeated()) {
      RETURN_IF_ERROR(
          ForEachMessage(reflection.GetMessage(message, field), inner, look));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      RETURN_IF_ERROR(ForEachMessage(
          reflection.GetRepeatedMessage(message, field, i), inner, look));
    }
  }
  return absl::OkStatus();
}

absl::Status Unknown(absl::string_view path) {
  return FieldError(
      OneLine(path, kPathBytesMax),
      absl::StrCat("the scheduler's build (", kBuildName,
                   ") does not know this field; leave it out, or have the "
                   "scheduler and the workers run the build of the client"));
}

bool IsKnown(const Descriptor* type, absl::string_view path) {
  for (const absl::string_view name : absl::StrSplit(path, '.')) {
    if (type == nullptr) return false;
    const FieldDescriptor* const field =
        type->FindFieldByName(std::string(name));
    if (field == nullptr) return false;
    type = field->message_type();
  }
  return true;
}

}  // namespace

std::vector<std::string> SetFields(const Message& message) {
  std::set<std::string> paths;
  ForEachMessage(message, "",
                 [&](const Message& inner, const std::string& path) {
                   std::vector<const FieldDescriptor*> fields;
                   inner.GetReflection()->ListFields(inner, &fields);
                   for (const FieldDescriptor* field : fields) {
                     paths.insert(Join(path, field->name()));
                   }
                   return absl::OkStatus();
                 })
      .IgnoreError();
  return {paths.begin(), paths.end()};
}

absl::Status CheckFieldsKnown(const Message& message,
                              const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (!IsKnown(message.GetDescriptor(), path)) return Unknown(path);
  }
  return ForEachMessage(
      message, "", [](const Message& inner, const std::string& path) {
        const auto& unknown = inner.GetReflection()->GetUnknownFields(inner);
        if (unknown.empty()) return absl::OkStatus();
        return Unknown(
            Join(path, absl::StrCat("#", unknown.field(0).number())));
      });
}

}  // namespace troupe
