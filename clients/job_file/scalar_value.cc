#include "clients/job_file/scalar_value.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "proto/base/check.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

absl::Status Expected(absl::string_view what, const YamlNode& node) {
  return absl::InvalidArgumentError(
      absl::StrCat("expected ", what, ", found ", FoundText(node)));
}

bool IsPlain(const YamlNode& node) {
  return node.kind == YamlNode::Kind::kScalar && !node.quoted;
}

bool LooksLikeInteger(absl::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+'))
    text.remove_prefix(1);
  if (text.empty()) return false;
  for (const char c : text) {
    if (!absl::ascii_isdigit(c)) return false;
  }
  return true;
}

template <typename Int>
absl::StatusOr<Int> Integer(const YamlNode& node) {
  if (!IsPlain(node) || !LooksLikeInteger(node.text)) {
    return Expected("an integer", node);
  }
  Int value;
  if (!absl::SimpleAtoi(node.text, &value)) {
    // The other end of what the type holds would tell a user nothing.
    if (node.text[0] == '-') return Expected("an integer from 0 on", node);
    return Expected(
        absl::StrCat("an integer up to ", std::numeric_limits<Int>::max()),
        node);
  }
  return value;
}

absl::StatusOr<double> Double(const YamlNode& node) {
  double value;
  if (!IsPlain(node) || !absl::SimpleAtod(node.text, &value)) {
    return Expected("a number", node);
  }
  if (!std::isfinite(value)) return Expected("a finite number", node);
  return value;
}

absl::StatusOr<bool> Bool(const YamlNode& node) {
  const std::string text = absl::AsciiStrToLower(node.text);
  if (!IsPlain(node) || (text != "true" && text != "false")) {
    return Expected("true or false", node);
  }
  return text == "true";
}

absl::StatusOr<std::string> Text(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::kScalar) return Expected("a text", node);
  return node.text;
}

}  // namespace

// Reflection names a method for each type; this is the one place that does.
#define TROUPE_SET_(Type, value)                       \
  do {                                                 \
    if (field.is_repeated()) {                         \
      reflection.Add##Type(&message, &field, (value)); \
    } else {                                           \
      reflection.Set##Type(&message, &field, (value)); \
    }                                                  \
    return absl::OkStatus();                           \
  } while (false)

absl::Status SetScalar(const YamlNode& node, const FieldDescriptor& field,
                       Message& message) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: {
      ASSIGN_OR_RETURN(const int32_t value, Integer<int32_t>(node));
      TROUPE_SET_(Int32, value);
    }
    case FieldDescriptor::CPPTYPE_INT64: {
      ASSIGN_OR_RETURN(const int64_t value, Integer<int64_t>(node));
      TROUPE_SET_(Int64, value);
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      ASSIGN_OR_RETURN(const uint64_t value, Integer<uint64_t>(node));
      TROUPE_SET_(UInt64, value);
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      ASSIGN_OR_RETURN(const double value, Double(node));
      TROUPE_SET_(Double, value);
    }
    case FieldDescriptor::CPPTYPE_BOOL: {
      ASSIGN_OR_RETURN(const bool value, Bool(node));
      TROUPE_SET_(Bool, value);
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      ASSIGN_OR_RETURN(const std::string value, Text(node));
      TROUPE_SET_(String, value);
    }
    default:
      CHECK(false) << "no job file form for " << field.full_name();
  }
  return absl::OkStatus();
}

#undef TROUPE_SET_

}  // namespace troupe
