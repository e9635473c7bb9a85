"""Small pictures of pictures, and none of what is no picture.

Spec: issue "Artifacts" 1.
"""

import io
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageFile

from artifacts import thumbnails
from artifacts.thumbnails import Pictures, make_pictures

MIME_TYPES = {
    "AVIF": "image/avif",
    "BMP": "image/bmp",
    "GIF": "image/gif",
    "JPEG": "image/jpeg",
    "PNG": "image/png",
    "WEBP": "image/webp",
}


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    target = io.BytesIO()
    image.save(target, kind, **options)
    return target.getvalue()


def made(data: bytes, mime_type: str) -> Pictures:
    pictures = make_pictures(io.BytesIO(data), mime_type)
    assert pictures is not None
    return pictures


def opened(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def png_of(width: int, height: int, pixels: bytes = b"") -> bytes:
    """A PNG whose header says whatever it says."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(pixels))
        + chunk(b"IEND", b"")
    )


@pytest.fixture
def decodes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Sizes of what was decoded, not merely opened."""
    sizes: list[tuple[int, int]] = []
    real = ImageFile.ImageFile.load

    def load(self: ImageFile.ImageFile) -> Any:
        sizes.append(self.size)
        return real(self)

    monkeypatch.setattr(ImageFile.ImageFile, "load", load)
    return sizes


class TestPictures:
    @pytest.mark.parametrize("kind", MIME_TYPES)
    def test_are_small(self, kind: str) -> None:
        data = encoded(Image.new("RGB", (1000, 500), "red"), kind)
        pictures = made(data, MIME_TYPES[kind])

        thumbnail, icon = opened(pictures.thumbnail), opened(pictures.icon)
        assert (thumbnail.format, thumbnail.size) == ("WEBP", (256, 128))
        assert (icon.format, icon.size) == ("PNG", (64, 32))
        red = thumbnail.convert("RGB").getpixel((10, 10))
        assert isinstance(red, tuple)
        assert red[0] > 240
        assert red[1] < 20

    def test_are_never_larger_than_the_picture(self) -> None:
        pictures = made(encoded(Image.new("RGB", (3, 2)), "PNG"), "image/png")

        assert opened(pictures.thumbnail).size == (3, 2)
        assert opened(pictures.icon).size == (3, 2)

    @pytest.mark.parametrize("size", [(1, 20_000), (20_000, 1)])
    def test_of_a_line_have_a_width(self, size: tuple[int, int]) -> None:
        pictures = made(encoded(Image.new("RGB", size), "PNG"), "image/png")

        assert sorted(opened(pictures.thumbnail).size) == [1, 256]

    def test_of_noise_fit_into_a_frame(self) -> None:
        noise = Image.effect_noise((500, 500), 100).convert("RGBA")
        noise.putalpha(Image.effect_noise((500, 500), 100))

        icon = made(encoded(noise, "PNG"), "image/png").icon

        assert len(icon) < 17 * 1024

    @pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
    def test_are_made_of_any_kind_of_pixels(self, mode: str) -> None:
        image = Image.new(mode, (300, 300))
        made(encoded(image, "PNG"), "image/png")

    def test_are_made_of_what_is_printed(self) -> None:
        made(encoded(Image.new("CMYK", (300, 300)), "JPEG"), "image/jpeg")

    def test_keep_what_is_transparent(self) -> None:
        image = Image.new("RGBA", (300, 300), (255, 0, 0, 0))
        pictures = made(encoded(image, "PNG"), "image/png")

        for data in (pictures.thumbnail, pictures.icon):
            assert opened(data).convert("RGBA").getpixel((5, 5))[3] == 0  # type: ignore[index]

    def test_show_the_first_of_a_film(self) -> None:
        frames = [Image.new("RGB", (300, 300), each) for each in ("red", "blue")]
        data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])

        assert opened(made(data, "image/gif").icon).convert("RGB").getpixel((1, 1)) == (
            *(255, 0, 0),
        )

    @pytest.mark.parametrize("orientation", range(1, 9))
    def test_stand_upright(self, orientation: int) -> None:
        """A camera that is turned says so beside the picture."""
        upright = Image.new("RGB", (400, 200), "white")
        upright.paste("black", (0, 0, 100, 100))
        back = {
            2: Image.Transpose.FLIP_LEFT_RIGHT,
            3: Image.Transpose.ROTATE_180,
            4: Image.Transpose.FLIP_TOP_BOTTOM,
            5: Image.Transpose.TRANSPOSE,
            6: Image.Transpose.ROTATE_90,
            7: Image.Transpose.TRANSVERSE,
            8: Image.Transpose.ROTATE_270,
        }
        turned = upright.transpose(back[orientation]) if orientation > 1 else upright
        exif = Image.Exif()
        exif[0x0112] = orientation

        shown = opened(made(encoded(turned, "JPEG", exif=exif), "image/jpeg").thumbnail)

        assert shown.size == (256, 128)
        grey = shown.convert("L")
        corners = [(5, 5), (250, 5), (5, 120), (250, 120)]
        dark = [corner for corner in corners if int(grey.getpixel(corner)) < 128]  # type: ignore[arg-type]
        assert dark == [(5, 5)]

    def test_tell_nothing_of_where_they_were_taken(self) -> None:
        exif = Image.Exif()
        exif[0x010E] = "SECRET place"
        image = Image.new("RGB", (300, 300))
        for kind in ("JPEG", "PNG", "WEBP"):
            data = encoded(
                image, kind, exif=exif, icc_profile=b"SECRET", comment=b"SECRET"
            )
            assert b"SECRET" in data

            pictures = made(data, MIME_TYPES[kind])

            assert b"SECRET" not in pictures.thumbnail + pictures.icon


class TestNone:
    @pytest.mark.parametrize("mime_type", MIME_TYPES.values())
    @pytest.mark.parametrize("data", [b"", b"x", b"GIF89a", bytes(1000)])
    def test_come_of_broken_pictures(self, data: bytes, mime_type: str) -> None:
        assert make_pictures(io.BytesIO(data), mime_type) is None

    @pytest.mark.parametrize("kind", MIME_TYPES)
    def test_come_of_cut_pictures(self, kind: str) -> None:
        data = encoded(Image.effect_noise((300, 300), 50).convert("RGB"), kind)

        assert (
            make_pictures(io.BytesIO(data[: len(data) // 2]), MIME_TYPES[kind]) is None
        )

    @given(st.data(), st.sampled_from(sorted(MIME_TYPES)))
    def test_or_some_come_of_bent_pictures(
        self, data: st.DataObject, kind: str
    ) -> None:
        """Whatever the bytes are, nothing is raised."""
        whole = bytearray(encoded(Image.new("RGB", (9, 9), "red"), kind))
        for _ in range(data.draw(st.integers(1, 4))):
            place = data.draw(st.integers(0, len(whole) - 1))
            whole[place] = data.draw(st.integers(0, 255))

        pictures = make_pictures(io.BytesIO(bytes(whole)), MIME_TYPES[kind])

        assert pictures is None or opened(pictures.thumbnail).format == "WEBP"

    @pytest.mark.parametrize(
        "mime_type",
        [
            *("image/svg+xml", "text/plain", "application/pdf", "image/tiff", ""),
            *("image/x-icon", "application/postscript", "image/x-portable-pixmap"),
        ],
    )
    def test_come_of_other_kinds(self, mime_type: str) -> None:
        """No other decoder sees the bytes; some of them start programs."""
        data = encoded(Image.new("RGB", (9, 9)), "PNG")

        assert make_pictures(io.BytesIO(data), mime_type) is None

    def test_come_of_what_is_called_another_kind(self) -> None:
        data = encoded(Image.new("RGB", (9, 9)), "PNG")

        assert make_pictures(io.BytesIO(data), "image/gif") is None

    @pytest.mark.parametrize(
        "size",
        [(5000, 10_001), (60_000, 60_000), (2**31 - 1, 2**31 - 1), (50_000_001, 1)],
    )
    @pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
    def test_come_of_bombs(
        self, size: tuple[int, int], decodes: list[tuple[int, int]]
    ) -> None:
        """A few bytes may promise gigabytes of pixels; nothing is decoded."""
        data = png_of(*size, pixels=bytes(1000))

        assert make_pictures(io.BytesIO(data), "image/png") is None
        assert decodes == []

    @pytest.mark.parametrize(("kind", "pixels"), [("WEBP", 1250), ("AVIF", 2000)])
    def test_come_of_less_where_decoders_take_more(
        self,
        kind: str,
        pixels: int,
        monkeypatch: pytest.MonkeyPatch,
        decodes: list[tuple[int, int]],
    ) -> None:
        monkeypatch.setattr(thumbnails, "MAX_DECODED_BYTES", 20_000)
        for width, is_made in ((pixels, True), (pixels + 1, False)):
            data = encoded(Image.new("RGB", (width, 1)), kind)
            decodes.clear()

            found = make_pictures(io.BytesIO(data), MIME_TYPES[kind])

            assert (found is not None) is is_made
            assert bool(decodes) is is_made

    def test_come_of_a_jpeg_that_is_gone_over_again_and_again(
        self, decodes: list[tuple[int, int]]
    ) -> None:
        image = Image.new("RGB", (300, 300), "red")
        data = encoded(image, "JPEG", progressive=True)
        begin = data.index(b"\xff\xda")
        again = data[:begin] + data[begin:-2] * 200 + data[-2:]

        assert make_pictures(io.BytesIO(again), "image/jpeg") is None
        assert decodes == []
        made(data, "image/jpeg")

    def test_come_of_files_that_are_too_large(
        self, monkeypatch: pytest.MonkeyPatch, decodes: list[tuple[int, int]]
    ) -> None:
        data = encoded(Image.new("RGB", (9, 9)), "PNG")
        monkeypatch.setattr(thumbnails, "MAX_BYTES", len(data) - 1)

        assert make_pictures(io.BytesIO(data), "image/png") is None
        assert decodes == []

    def test_come_when_memory_runs_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(self: Image.Image, *args: Any, **options: Any) -> None:
            raise MemoryError

        monkeypatch.setattr(Image.Image, "thumbnail", fail)
        data = encoded(Image.new("RGB", (9, 9)), "PNG")

        assert make_pictures(io.BytesIO(data), "image/png") is None
