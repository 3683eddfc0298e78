#include "clients/cli/view/message_json.h"

#include <cmath>
#include <utility>

#include "absl/strings/escaping.h"
#include "google/protobuf/descriptor.h"
#include "nlohmann/json.hpp"
#include "proto/base/check.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Json = nlohmann::ordered_json;

Json Number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json Text(const FieldDescriptor& field, const std::string& value) {
  const bool is_bytes = field.type() == FieldDescriptor::TYPE_BYTES;
  return is_bytes ? Json(absl::Base64Escape(value)) : Json(value);
}

Json SingleJson(const Message& message, const FieldDescriptor& field) {
  const google::protobuf::Reflection& get = *message.GetReflection();
  if (field.has_presence() && !get.HasField(message, &field)) return nullptr;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return get.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64:
      return get.GetInt64(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return get.GetUInt64(message, &field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return Number(get.GetDouble(message, &field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return get.GetBool(message, &field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return get.GetEnum(message, &field)->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return Text(field, get.GetString(message, &field));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return MessageJson(get.GetMessage(message, &field));
    default:
      CHECK(false) << "no JSON form for " << field.full_name();
  }
  return nullptr;
}

Json ItemJson(const Message& message, const FieldDescriptor& field, int i) {
  const google::protobuf::Reflection& get = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return get.GetRepeatedInt32(message, &field, i);
    case FieldDescriptor::CPPTYPE_INT64:
      return get.GetRepeatedInt64(message, &field, i);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return Number(get.GetRepeatedDouble(message, &field, i));
    case FieldDescriptor::CPPTYPE_ENUM:
      return get.GetRepeatedEnum(message, &field, i)->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return Text(field, get.GetRepeatedString(message, &field, i));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return MessageJson(get.GetRepeatedMessage(message, &field, i));
    default:
      CHECK(false) << "no JSON form for " << field.full_name();
  }
  return nullptr;
}

}  // namespace

nlohmann::ordered_json MessageJson(const Message& message) {
  Json json = Json::object();
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.is_repeated()) {
      Json list = Json::array();
      const int size = message.GetReflection()->FieldSize(message, &field);
      for (int j = 0; j < size; ++j) {
        list.push_back(ItemJson(message, field, j));
      }
      json[field.name()] = std::move(list);
    } else if (field.message_type() == nullptr ||
               message.GetReflection()->HasField(message, &field)) {
      json[field.name()] = SingleJson(message, field);
    }
  }
  return json;
}

std::string DescriptionJson(const JobDescription& job) {
  Json json = MessageJson(job.status());
  json["plan"] = MessageJson(job.plan());
  json["steps"] = Json::array();
  for (const StepRecord& step : job.steps()) {
    json["steps"].push_back(MessageJson(step));
  }
  json["events"] = Json::array();
  for (const JobEvent& event : job.events()) {
    json["events"].push_back(MessageJson(event));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string MessageJsonText(const Message& message) {
  return MessageJson(message).dump(2, ' ', false,
                                   Json::error_handler_t::replace) +
         "\n";
}

}  // namespace troupe
