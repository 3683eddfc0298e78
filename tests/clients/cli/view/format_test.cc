#include "clients/cli/view/format.h"

#include <limits>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Format, Bytes) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(1023), "1023 B");
  EXPECT_EQ(BytesText(1024), "1.0 KiB");
  EXPECT_EQ(BytesText(1288490189), "1.2 GiB");
  EXPECT_EQ(BytesText(1048575), "1.0 MiB");
}

TEST(Format, Counts) {
  EXPECT_EQ(CountText(0), "0");
  EXPECT_EQ(CountText(950), "950");
  EXPECT_EQ(CountText(1.5), "1.5");
  EXPECT_EQ(CountText(12345), "12.3k");
  EXPECT_EQ(CountText(999.9), "1.0k");
  EXPECT_EQ(CountText(124e6), "124M");
  EXPECT_EQ(CountText(std::numeric_limits<double>::quiet_NaN()), "-");
  EXPECT_EQ(GroupedText(0), "0");
  EXPECT_EQ(GroupedText(999), "999");
  EXPECT_EQ(GroupedText(8192), "8,192");
  EXPECT_EQ(GroupedText(-1234567), "-1,234,567");
  EXPECT_EQ(GroupedText(-123), "-123");
}

TEST(Format, Times) {
  EXPECT_EQ(SecondsText(0), "0 s");
  EXPECT_EQ(SecondsText(1.234), "1.23 s");
  EXPECT_EQ(SecondsText(0.0456), "45.6 ms");
  EXPECT_EQ(SecondsText(0.00078), "780 us");
  EXPECT_EQ(SecondsText(123.4), "123 s");
  EXPECT_EQ(ClockText(42), "0:42");
  EXPECT_EQ(ClockText(3723), "1:02:03");
  EXPECT_EQ(ClockText(-1), "-");
  EXPECT_EQ(PercentText(0.412), "41.2%");
  EXPECT_EQ(TimeText(0), "-");
}

TEST(Format, Links) {
  TopologyLink link;
  link.mutable_rate()->set_bytes_per_second(1.1e9);
  link.mutable_rate()->set_latency_us(30);
  link.set_why("nobody has measured it");
  EXPECT_EQ(LinkText(link),
            "1.1 GB/s, 30 us (assumed: nobody has measured it)");
  link.mutable_rate()->set_bytes_per_second(4.6e6);
  link.set_source(MEASURED);
  EXPECT_EQ(ShortLinkText(link), "4.6 MB/s measured");
}

TEST(Format, Ranges) {
  EXPECT_EQ(RangesText({}), "");
  EXPECT_EQ(RangesText({3}), "3");
  EXPECT_EQ(RangesText({0, 1, 2, 5}), "0-2,5");
}

TEST(Table, AlignsColumns) {
  Table table({"NAME", "SIZE>", "NOTE"});
  table.Add({"a", "1", ""});
  table.Add({"caf\xc3\xa9", "1,000", "x"});
  EXPECT_EQ(table.Text("  "),
            "  NAME   SIZE  NOTE\n"
            "  a         1\n"
            "  caf\xc3\xa9  1,000  x\n");
}

}  // namespace
}  // namespace troupe
