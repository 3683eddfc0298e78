#include "worker/calibrate/calibrate.h"

#include <set>
#include <string>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "worker/collective/shared_memory/memory_domain.h"

namespace troupe {
namespace {

TEST(Calibrate, FillsEverythingThatThePlannerReads) {
  const std::unique_ptr<Device> device = NewCpuDevice({.threads = 1});
  const RealClock clock;
  const absl::StatusOr<Calibration> calibration =
      Calibrate(*device, clock,
                {.compute = {.each = absl::Milliseconds(1), .shrink = 16},
                 .link = {.bytes = 1 << 16, .repeats = 1}});
  ASSERT_TRUE(calibration.ok()) << calibration.status();
  // Those that somebody else fills, or nobody on a CPU.
  std::set<std::string> others = {"device",
                                  "threads",
                                  "host_bytes_per_second",
                                  "nvme_bytes_per_second",
                                  "nvme_read_bytes_per_second",
                                  "nvme_write_bytes_per_second",
                                  "nvme_read_latency_us",
                                  "nvme_write_latency_us"};
  if (MemoryDomain().empty()) others.insert("shared_memory");
  const google::protobuf::Descriptor& fields = *Calibration::descriptor();
  const google::protobuf::Reflection& values = *calibration->GetReflection();
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = fields.field(i);
    if (others.count(field->name()) > 0) continue;
    if (field->is_repeated()) {
      EXPECT_GT(values.FieldSize(*calibration, field), 0) << field->name();
    } else if (field->message_type() != nullptr) {
      EXPECT_TRUE(values.HasField(*calibration, field)) << field->name();
    } else {
      EXPECT_GT(values.GetDouble(*calibration, field), 0) << field->name();
    }
  }
  EXPECT_GT(calibration->loopback().bytes_per_second(), 0);
}

}  // namespace
}  // namespace troupe
