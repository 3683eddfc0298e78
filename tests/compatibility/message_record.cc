#include "tests/compatibility/message_record.h"

#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/protocol_version.h"
#include "proto/scheduler.pb.h"
#include "proto/worker.pb.h"

namespace troupe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::MethodDescriptor;

constexpr absl::string_view kFirstLine = "protocol ";
constexpr absl::string_view kIs = " = ";

std::string LabelOf(const FieldDescriptor& field) {
  if (field.is_repeated()) return "repeated";
  const auto* const one_of = field.real_containing_oneof();
  if (one_of != nullptr) return absl::StrCat("oneof ", one_of->name());
  return field.has_presence() ? "optional" : "plain";
}

std::string TypeOf(const FieldDescriptor& field) {
  const std::string type = field.type_name();
  if (field.message_type() != nullptr) {
    return absl::StrCat(type, " ", field.message_type()->full_name());
  }
  if (field.enum_type() != nullptr) {
    return absl::StrCat(type, " ", field.enum_type()->full_name());
  }
  return type;
}

void Add(const EnumDescriptor& choices, MessageRecord& record) {
  for (int i = 0; i < choices.value_count(); ++i) {
    record.lines[absl::StrCat(choices.full_name(), ".",
                              choices.value(i)->name())] =
        absl::StrCat(choices.value(i)->number());
  }
}

void Add(const Descriptor& message, MessageRecord& record) {
  record.lines[message.full_name()] = "message";
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    record.lines[field.full_name()] =
        absl::StrCat(field.number(), " ", LabelOf(field), " ", TypeOf(field));
  }
  for (int i = 0; i < message.nested_type_count(); ++i) {
    Add(*message.nested_type(i), record);
  }
  for (int i = 0; i < message.enum_type_count(); ++i) {
    Add(*message.enum_type(i), record);
  }
}

void Add(const MethodDescriptor& method, MessageRecord& record) {
  record.lines[method.full_name()] =
      absl::StrCat(method.client_streaming() ? "stream " : "",
                   method.input_type()->full_name(), " -> ",
                   method.server_streaming() ? "stream " : "",
                   method.output_type()->full_name());
}

void Add(const FileDescriptor& file, std::set<std::string>& seen,
         MessageRecord& record) {
  if (!seen.insert(file.name()).second) return;
  for (int i = 0; i < file.dependency_count(); ++i) {
    Add(*file.dependency(i), seen, record);
  }
  for (int i = 0; i < file.message_type_count(); ++i) {
    Add(*file.message_type(i), record);
  }
  for (int i = 0; i < file.enum_type_count(); ++i) {
    Add(*file.enum_type(i), record);
  }
  for (int i = 0; i < file.service_count(); ++i) {
    for (int j = 0; j < file.service(i)->method_count(); ++j) {
      Add(*file.service(i)->method(j), record);
    }
  }
}

}  // namespace

MessageRecord RecordOf(const std::vector<const FileDescriptor*>& files,
                       int32_t protocol) {
  MessageRecord record = {.protocol = protocol};
  std::set<std::string> seen;
  for (const FileDescriptor* file : files) Add(*file, seen, record);
  return record;
}

MessageRecord PresentRecord() {
  return RecordOf({WorkerMessage::descriptor()->file(),
                   SubmitJobRequest::descriptor()->file()},
                  kProtocolVersion);
}

std::string RecordText(const MessageRecord& record) {
  std::string text = absl::StrCat(kFirstLine, record.protocol, "\n");
  for (const auto& [name, is] : record.lines) {
    absl::StrAppend(&text, name, kIs, is, "\n");
  }
  return text;
}

absl::StatusOr<MessageRecord> ParseRecord(absl::string_view text) {
  MessageRecord record;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (record.protocol == 0) {
      if (absl::ConsumePrefix(&line, kFirstLine) &&
          absl::SimpleAtoi(line, &record.protocol) && record.protocol > 0) {
        continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat("the first line is no protocol's number: ", line));
    }
    const size_t at = line.find(kIs);
    if (at == absl::string_view::npos ||
        !record.lines.emplace(line.substr(0, at), line.substr(at + kIs.size()))
             .second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "no line of a record, or one that is there twice: ", line));
    }
  }
  if (record.protocol > 0) return record;
  return absl::InvalidArgumentError("the record is empty");
}

absl::Status CheckGrownFrom(const MessageRecord& recorded,
                            const MessageRecord& present) {
  if (present.protocol > recorded.protocol) return absl::OkStatus();
  if (present.protocol < recorded.protocol) {
    return absl::FailedPreconditionError(absl::StrCat(
        "protocol ", recorded.protocol,
        " was recorded, and this build is of protocol ", present.protocol));
  }
  std::vector<std::string> broken;
  for (const auto& [name, was] : recorded.lines) {
    const auto it = present.lines.find(name);
    if (it == present.lines.end()) {
      broken.push_back(absl::StrCat("  ", name, " (", was, ") is not there"));
    } else if (it->second != was) {
      broken.push_back(
          absl::StrCat("  ", name, " is ", it->second, "; it was ", was));
    }
  }
  if (broken.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "builds of protocol ", recorded.protocol,
      " have other messages than this one, which has the same number:\n",
      absl::StrJoin(broken, "\n"),
      "\nRaise kProtocolVersion (proto/protocol_version.h; what to record "
      "before that: tests/compatibility/README.md), or leave these as they "
      "were"));
}

std::vector<std::string> Added(const MessageRecord& recorded,
                               const MessageRecord& present) {
  std::vector<std::string> added;
  for (const auto& [name, is] : present.lines) {
    if (recorded.lines.count(name) == 0) {
      added.push_back(absl::StrCat(name, kIs, is));
    }
  }
  return added;
}

}  // namespace troupe
