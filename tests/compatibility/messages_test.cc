// That no message changes without a new protocol number (README.md).
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/descriptor.pb.h"
#include "gtest/gtest.h"
#include "proto/protocol_version.h"
#include "tests/compatibility/message_record.h"

namespace troupe {
namespace {

constexpr char kFile[] = "tests/compatibility/messages.txt";
// A file to be recorded anew, instead of compared.
constexpr char kRecord[] = "TROUPE_RECORD_MESSAGES";
constexpr char kHowTo[] =
    "TROUPE_RECORD_MESSAGES=$PWD/tests/compatibility/messages.txt bazel run "
    "//tests/compatibility:messages_test";

std::string TextOf(const std::string& file) {
  std::ostringstream bytes;
  bytes << std::ifstream(file).rdbuf();
  return bytes.str();
}

TEST(Messages, AreThoseThatWereRecordedForThisProtocol) {
  const char* const record_to = std::getenv(kRecord);
  const std::string file = record_to != nullptr ? record_to : kFile;
  const auto recorded = ParseRecord(TextOf(file));
  ASSERT_TRUE(recorded.ok()) << file << ": " << recorded.status();
  const MessageRecord present = PresentRecord();
  const absl::Status grown = CheckGrownFrom(*recorded, present);
  ASSERT_TRUE(grown.ok()) << grown.message();
  if (record_to != nullptr) {
    ASSERT_TRUE((std::ofstream(file) << RecordText(present)).flush()) << file;
    return;
  }
  EXPECT_EQ(recorded->protocol, present.protocol)
      << "kProtocolVersion was raised: record its messages with\n  " << kHowTo;
  if (recorded->protocol != present.protocol) return;
  const std::vector<std::string> added = Added(*recorded, present);
  EXPECT_TRUE(added.empty())
      << "new in the messages of protocol " << present.protocol << ":\n  "
      << absl::StrJoin(added, "\n  ")
      << "\nIf a peer that does not know these may ignore them, and does no "
         "harm by it, record them with\n  "
      << kHowTo
      << "\nElse raise kProtocolVersion (proto/protocol_version.h) first; "
         "tests/compatibility/README.md says what to record before that.";
}

TEST(Messages, AreThoseOfTheServicesAndOfTheStore) {
  const MessageRecord present = PresentRecord();
  EXPECT_EQ(present.protocol, kProtocolVersion);
  for (const auto& [name, is] :
       std::vector<std::pair<const char*, const char*>>{
           {"troupe.Register.held", "5 optional message troupe.HeldRank"},
           {"troupe.HeldRank.kept", "5 repeated message troupe.KeptCopy"},
           {"troupe.RankEnded.missing_rank", "4 optional int32"},
           {"troupe.WorkerMessage.step",
            "4 oneof message message troupe.StepReport"},
           {"troupe.StoredHandOut.loads_data", "2 repeated bool"},
           {"troupe.JobState.QUEUED", "1"},
           {"troupe.Workers.Session",
            "stream troupe.WorkerMessage -> stream troupe.SchedulerMessage"},
       }) {
    const auto it = present.lines.find(name);
    ASSERT_NE(it, present.lines.end()) << name;
    EXPECT_EQ(it->second, is) << name;
  }
}

// A file with a message M of this field and an enumeration E with B.
MessageRecord Made(const std::string& name, int number,
                   google::protobuf::FieldDescriptorProto::Type type,
                   bool repeated, int b, int32_t protocol = 7) {
  google::protobuf::FileDescriptorProto file;
  file.set_name("m.proto");
  file.set_syntax("proto3");
  auto& message = *file.add_message_type();
  message.set_name("M");
  auto& field = *message.add_field();
  field.set_name(name);
  field.set_number(number);
  field.set_type(type);
  field.set_label(repeated
                      ? google::protobuf::FieldDescriptorProto::LABEL_REPEATED
                      : google::protobuf::FieldDescriptorProto::LABEL_OPTIONAL);
  auto& choices = *file.add_enum_type();
  choices.set_name("E");
  for (const auto& [value, is] : {std::pair("A", 0), std::pair("B", b)}) {
    choices.add_value()->set_name(value);
    choices.mutable_value()->rbegin()->set_number(is);
  }
  google::protobuf::DescriptorPool pool;
  return RecordOf({pool.BuildFile(file)}, protocol);
}

TEST(Messages, MayGrowUnderTheirNumberAndNotChange) {
  using Field = google::protobuf::FieldDescriptorProto;
  const MessageRecord was = Made("f", 1, Field::TYPE_INT32, false, 1);
  EXPECT_EQ(RecordText(was),
            "protocol 7\nE.A = 0\nE.B = 1\nM = message\nM.f = 1 plain int32\n");
  EXPECT_EQ(RecordText(*ParseRecord(RecordText(was))), RecordText(was));
  EXPECT_TRUE(CheckGrownFrom(was, was).ok());
  MessageRecord grown = was;
  grown.lines["M.g"] = "2 plain int32";
  EXPECT_TRUE(CheckGrownFrom(was, grown).ok());
  EXPECT_EQ(Added(was, grown), std::vector<std::string>{"M.g = 2 plain int32"});
  EXPECT_FALSE(CheckGrownFrom(grown, was).ok()) << "a field was removed";
  const MessageRecord changed[] = {
      Made("g", 1, Field::TYPE_INT32, false, 1),
      Made("f", 2, Field::TYPE_INT32, false, 1),
      Made("f", 1, Field::TYPE_INT64, false, 1),
      Made("f", 1, Field::TYPE_INT32, true, 1),
      Made("f", 1, Field::TYPE_INT32, false, 2),
  };
  for (const MessageRecord& other : changed) {
    const absl::Status refused = CheckGrownFrom(was, other);
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << RecordText(other);
    EXPECT_TRUE(absl::StrContains(refused.message(), "Raise kProtocolVersion"));
    MessageRecord raised = other;
    raised.protocol = 8;
    EXPECT_TRUE(CheckGrownFrom(was, raised).ok());
    EXPECT_FALSE(CheckGrownFrom(raised, was).ok()) << "an older number";
  }
}

TEST(Messages, ARecordThatIsNoneIsRefused) {
  for (const char* text :
       {"", "M = message\n", "protocol 0\n", "protocol 7\nM\n",
        "protocol 7\nM = message\nM = message\n"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseRecord(text).status())) << text;
  }
}

}  // namespace
}  // namespace troupe
