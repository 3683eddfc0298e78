#include "clients/job_file/print_job.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "proto/base/check.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// `index` is the element of a repeated field, -1 of a single one.
std::string ScalarYaml(const Message& message, const FieldDescriptor& field,
                       int index) {
  const google::protobuf::Reflection& get = *message.GetReflection();
  const bool one = index < 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return absl::StrCat(one ? get.GetInt32(message, &field)
                              : get.GetRepeatedInt32(message, &field, index));
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat(one ? get.GetInt64(message, &field)
                              : get.GetRepeatedInt64(message, &field, index));
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat(one ? get.GetUInt64(message, &field)
                              : get.GetRepeatedUInt64(message, &field, index));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return ShortestDouble(
          one ? get.GetDouble(message, &field)
              : get.GetRepeatedDouble(message, &field, index));
    case FieldDescriptor::CPPTYPE_BOOL:
      return (one ? get.GetBool(message, &field)
                  : get.GetRepeatedBool(message, &field, index))
                 ? "true"
                 : "false";
    case FieldDescriptor::CPPTYPE_STRING:
      return YamlText(one ? get.GetString(message, &field)
                          : get.GetRepeatedString(message, &field, index));
    default:
      CHECK(false) << "no job file form for " << field.full_name();
  }
  return "";
}

std::string ListYaml(const Message& message, const FieldDescriptor& field) {
  std::string out = "[";
  const int size = message.GetReflection()->FieldSize(message, &field);
  for (int i = 0; i < size; ++i) {
    absl::StrAppend(&out, i == 0 ? "" : ", ", ScalarYaml(message, field, i));
  }
  return out + "]";
}

void AppendMessage(const Message& message, const std::string& indent,
                   std::string& out);

// A list of sections, each of them from a dash on.
void AppendSections(const Message& message, const FieldDescriptor& field,
                    const std::string& indent, std::string& out) {
  const google::protobuf::Reflection& get = *message.GetReflection();
  for (int i = 0; i < get.FieldSize(message, &field); ++i) {
    std::string section;
    AppendMessage(get.GetRepeatedMessage(message, &field, i), indent + "    ",
                  section);
    if (section.empty()) section = indent + "    {}\n";
    section[indent.size() + 2] = '-';
    out += section;
  }
}

void AppendMessage(const Message& message, const std::string& indent,
                   std::string& out) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);  // in proto order
  for (const FieldDescriptor* field : fields) {
    absl::StrAppend(&out, indent, field->name(), ":");
    if (field->is_repeated() && field->message_type() != nullptr) {
      out += "\n";
      AppendSections(message, *field, indent, out);
    } else if (field->is_repeated()) {
      absl::StrAppend(&out, " ", ListYaml(message, *field), "\n");
    } else if (field->message_type() != nullptr) {
      out += "\n";
      AppendMessage(message.GetReflection()->GetMessage(message, field),
                    indent + "  ", out);
    } else {
      absl::StrAppend(&out, " ", ScalarYaml(message, *field, -1), "\n");
    }
  }
}

bool IsSafePlain(absl::string_view text) {
  if (text.empty()) return false;
  for (const char c : text) {
    if (!absl::ascii_isalnum(c) && !absl::StrContains("_./-+", c)) {
      return false;
    }
  }
  double number;
  const std::string lower = absl::AsciiStrToLower(text);
  return text[0] != '-' && lower != "null" && lower != "true" &&
         lower != "false" && !absl::SimpleAtod(text, &number);
}

}  // namespace

std::string ShortestDouble(double value) {
  char text[32];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value) break;
  }
  return text;
}

std::string YamlText(absl::string_view text) {
  if (IsSafePlain(text)) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      absl::StrAppend(&out, "\\", absl::string_view(&c, 1));
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\x%02x", c);
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string JobYaml(const JobSpec& job) {
  std::string out;
  AppendMessage(job, "", out);
  return out;
}

}  // namespace troupe
