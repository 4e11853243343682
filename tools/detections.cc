#include "tools/detections.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_format.h"
#include "tools/tensor_values.h"

namespace interp {
namespace {

constexpr int64_t kLabelAndScore = 2;
constexpr double kFar = 1e9;             // as much as can be drawn
constexpr double kMaxLabel = 1LL << 53;  // above, doubles leave out whole numbers

// The columns of the rows; nullopt for tensors of other forms.
std::optional<int64_t> ColumnsOf(const Tensor& tensor) {
  const Shape& shape = tensor.shape;
  if (!IsFloating(tensor.dtype) || shape.rank() < 2) return std::nullopt;
  for (int i = 0; i + 2 < shape.rank(); ++i) {
    if (shape[i] != 1) return std::nullopt;
  }
  const int64_t columns = shape[shape.rank() - 1];
  for (const int64_t size : {4, 8, 16, 24, 32}) {
    if (columns == kLabelAndScore + size) return columns;
  }
  return std::nullopt;
}

// A row whose label is negative is a detection with that label.
template <typename T>
absl::StatusOr<Detection> ReadRow(const T* row, int64_t columns) {
  const double label = ToDouble(row[0]);
  if (!(std::abs(label) <= kMaxLabel) || label != std::round(label)) {
    return InvalidArgument("label ", label, ", expected a whole number: are these rows of label, ",
                           "score, x0, y0, x1, y1?");
  }
  Detection detection{.label = static_cast<int64_t>(label), .score = ToDouble(row[1])};
  for (int64_t i = kLabelAndScore; i < columns; i += 2) {
    detection.points.push_back({ToDouble(row[i]), ToDouble(row[i + 1])});
  }
  return detection;
}

template <typename T>
absl::StatusOr<std::vector<Detection>> ReadRows(const T* data, int64_t count, int64_t columns) {
  std::vector<Detection> detections;
  for (int64_t row = 0; row < count / columns; ++row) {
    absl::StatusOr<Detection> detection = ReadRow(data + row * columns, columns);
    if (!detection.ok()) return Annotate(detection.status(), absl::StrCat("row ", row));
    if (detection->label >= 0) detections.push_back(*std::move(detection));
  }
  return detections;
}

// Sizes that can be seen in pictures of any size.
struct Style {
  int line = 1;
  int text_scale = 1;
};

Style StyleFor(const Picture<uint8_t>& picture) {
  constexpr int kPixelsPerLine = 500;
  constexpr int kPixelsPerTextScale = 800;
  const int longer = std::max(picture.width, picture.height);
  return {.line = (longer + kPixelsPerLine - 1) / kPixelsPerLine,
          .text_scale = std::max(1, (longer + kPixelsPerTextScale / 2) / kPixelsPerTextScale)};
}

// Strong colours; those of neighbouring labels are far apart.
PixelColour ColourOf(int64_t label) {
  constexpr double kGoldenRatio = 0.6180339887498949;
  const double hue = std::fmod(static_cast<double>(label) * kGoldenRatio, 1.0) * 6;
  const auto channel = [hue](double offset) {
    const double distance = std::abs(std::fmod(hue + offset, 6.0) - 3);
    return static_cast<uint8_t>(std::lround(40 + 215 * std::clamp(distance - 1, 0.0, 1.0)));
  };
  return {channel(0), channel(4), channel(2)};
}

PixelColour TextColourOn(PixelColour colour) {
  const double brightness = 0.299 * colour.red + 0.587 * colour.green + 0.114 * colour.blue;
  return brightness > 140 ? PixelColour{0, 0, 0} : PixelColour{255, 255, 255};
}

// "cat 0.93"
std::string TextOf(const Detection& detection, absl::Span<const std::string> labels) {
  constexpr size_t kMaxNameBytes = 80;
  const bool named = detection.label < std::ssize(labels) && !labels[detection.label].empty();
  const std::string name =
      named ? labels[detection.label].substr(0, kMaxNameBytes) : absl::StrCat(detection.label);
  return absl::StrFormat("%s %.2f", name, detection.score);
}

// Above the box, or at its upper edge where the picture has no room above.
void DrawTag(const Rectangle& box, absl::string_view text, const Style& style, PixelColour colour,
             Picture<uint8_t>& picture) {
  const int margin = style.text_scale;
  const int width = TextWidth(text, style.text_scale) + 2 * margin;
  const int height = TextHeight(style.text_scale) + 2 * margin;
  const int left = std::max(0, std::min(box.left, picture.width - width));
  const int top = box.top >= height ? box.top - height : box.top;
  FillRectangle({left, top, left + width, top + height}, colour, picture);
  DrawText(text, left + margin, top + margin, style.text_scale, TextColourOn(colour), picture);
}

// The pixels around all points that lie in the picture; nullopt where there are none.
std::optional<Rectangle> BoundsIn(const Picture<uint8_t>& picture,
                                  const std::vector<Point>& points) {
  Point low = points[0];
  Point high = points[0];
  for (const Point& point : points) {
    if (!std::isfinite(point.x) || !std::isfinite(point.y)) return std::nullopt;
    low = {std::min(low.x, point.x), std::min(low.y, point.y)};
    high = {std::max(high.x, point.x), std::max(high.y, point.y)};
  }
  if (low.x >= picture.width || low.y >= picture.height || high.x < 0 || high.y < 0) {
    return std::nullopt;
  }
  const auto nearest = [](double at, int least, int most) {
    return static_cast<int>(std::clamp(std::round(at), double{0} + least, double{0} + most));
  };
  const int left = nearest(low.x, 0, picture.width - 1);
  const int top = nearest(low.y, 0, picture.height - 1);
  return Rectangle{left, top, nearest(high.x, left + 1, picture.width),
                   nearest(high.y, top + 1, picture.height)};
}

void DrawPolygon(const std::vector<Point>& points, int thickness, PixelColour colour,
                 Picture<uint8_t>& picture) {
  const auto bounded = [](const Point& point) {
    return Point{std::clamp(point.x, -kFar, kFar), std::clamp(point.y, -kFar, kFar)};
  };
  for (size_t i = 0; i < points.size(); ++i) {
    const Point& next = points[(i + 1) % points.size()];
    DrawLine(bounded(points[i]), bounded(next), thickness, colour, picture);
  }
}

bool DrawDetection(const Detection& detection, absl::Span<const std::string> labels,
                   const Style& style, Picture<uint8_t>& picture) {
  const std::optional<Rectangle> bounds = BoundsIn(picture, detection.points);
  if (!bounds.has_value()) return false;
  const PixelColour colour = ColourOf(detection.label);
  if (detection.points.size() == 2) {
    DrawFrame(*bounds, style.line, colour, picture);
  } else {
    DrawPolygon(detection.points, style.line, colour, picture);
  }
  DrawTag(*bounds, TextOf(detection, labels), style, colour, picture);
  return true;
}

}  // namespace

absl::StatusOr<std::vector<Detection>> ReadDetections(const NamedTensor& named) {
  const auto& [name, tensor] = named;
  if (!tensor.has_memory()) return NotFound("'", name, "' has no value to draw");
  std::optional<int64_t> columns = ColumnsOf(tensor);
  absl::StatusOr<std::vector<Detection>> detections = std::vector<Detection>();
  bool nothing = false;
  VisitElements(tensor, [&](const auto* data, int64_t count) {
    nothing = count == 1 && ToDouble(data[0]) == -1;
    if (columns.has_value()) detections = ReadRows(data, count, *columns);
  });
  if (!columns.has_value() && !nothing) {
    return InvalidArgument("'", name, "' is ", DescribeType(tensor),
                           ", expected floats [N,6], rows of label, score, x0, y0, x1, y1, or "
                           "[N,10], [N,18], [N,26], [N,34] with more corners");
  }
  if (!detections.ok()) return Annotate(detections.status(), absl::StrCat("'", name, "'"));
  return detections;
}

int64_t DrawDetections(absl::Span<const Detection> detections, absl::Span<const std::string> labels,
                       Picture<uint8_t>& picture) {
  std::vector<const Detection*> order;
  for (const Detection& detection : detections) order.push_back(&detection);
  std::stable_sort(order.begin(), order.end(),
                   [](const Detection* a, const Detection* b) { return a->score < b->score; });
  const Style style = StyleFor(picture);
  int64_t num_drawn = 0;
  for (const Detection* detection : order) {
    if (DrawDetection(*detection, labels, style, picture)) ++num_drawn;
  }
  return num_drawn;
}

}  // namespace interp
