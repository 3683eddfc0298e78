#include "scheduler/status/json.h"

#include <cmath>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/descriptor.h"
#include "nlohmann/json.hpp"

namespace troupe {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void AppendMessage(const Message& message, std::string* out);

void AppendDouble(double value, std::string* out) {
  if (!std::isfinite(value)) {
    absl::StrAppend(out, "null");
    return;
  }
  // The shortest of the two that reads back the same.
  const std::string brief = absl::StrFormat("%.9g", value);
  absl::StrAppend(
      out, std::stod(brief) == value ? brief : absl::StrFormat("%.17g", value));
}

// One value; element < 0: the field is not repeated.
void AppendValue(const Message& message, const FieldDescriptor* field,
                 int element, std::string* out) {
  const Reflection* get = message.GetReflection();
  const bool one = element < 0;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return absl::StrAppend(
          out, one ? get->GetInt32(message, field)
                   : get->GetRepeatedInt32(message, field, element));
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrAppend(
          out, one ? get->GetInt64(message, field)
                   : get->GetRepeatedInt64(message, field, element));
    case FieldDescriptor::CPPTYPE_UINT32:
      return absl::StrAppend(
          out, one ? get->GetUInt32(message, field)
                   : get->GetRepeatedUInt32(message, field, element));
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrAppend(
          out, one ? get->GetUInt64(message, field)
                   : get->GetRepeatedUInt64(message, field, element));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return AppendDouble(one ? get->GetDouble(message, field)
                              : get->GetRepeatedDouble(message, field, element),
                          out);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return AppendDouble(one ? get->GetFloat(message, field)
                              : get->GetRepeatedFloat(message, field, element),
                          out);
    case FieldDescriptor::CPPTYPE_BOOL: {
      const bool value = one ? get->GetBool(message, field)
                             : get->GetRepeatedBool(message, field, element);
      return absl::StrAppend(out, value ? "true" : "false");
    }
    case FieldDescriptor::CPPTYPE_ENUM: {
      const EnumValueDescriptor* value =
          one ? get->GetEnum(message, field)
              : get->GetRepeatedEnum(message, field, element);
      return absl::StrAppend(out, "\"", value->name(), "\"");
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string text =
          one ? get->GetString(message, field)
              : get->GetRepeatedString(message, field, element);
      const bool bytes = field->type() == FieldDescriptor::TYPE_BYTES;
      return absl::StrAppend(
          out, JsonString(bytes ? absl::Base64Escape(text) : text));
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return AppendMessage(
          one ? get->GetMessage(message, field)
              : get->GetRepeatedMessage(message, field, element),
          out);
  }
}

void AppendMessage(const Message& message, std::string* out) {
  const Reflection* get = message.GetReflection();
  const auto* descriptor = message.GetDescriptor();
  absl::string_view separator = "{";
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    if (field->has_presence() && !get->HasField(message, field)) continue;
    absl::StrAppend(out, separator, "\"", field->name(), "\":");
    separator = ",";
    if (!field->is_repeated()) {
      AppendValue(message, field, -1, out);
      continue;
    }
    out->push_back('[');
    for (int element = 0; element < get->FieldSize(message, field); ++element) {
      if (element > 0) out->push_back(',');
      AppendValue(message, field, element, out);
    }
    out->push_back(']');
  }
  absl::StrAppend(out, separator == "{" ? "{}" : "}");
}

}  // namespace

std::string ToJson(const Message& message) {
  std::string out;
  AppendMessage(message, &out);
  return out;
}

std::string JsonNumber(double value) {
  std::string out;
  AppendDouble(value, &out);
  return out;
}

std::string JsonString(absl::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace troupe
