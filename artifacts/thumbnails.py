"""Small pictures of pictures.

A picture that is broken, too large or of another kind has none, and that is no error.

Spec: issue "Artifacts" 1; EMIT 10.9.
"""

import io
import logging
import os
import threading
from dataclasses import dataclass
from typing import BinaryIO, Final

from PIL import Image, ImageOps

logger = logging.getLogger(__name__)

#: Of the longer side of the picture that is kept.
THUMBNAIL_PIXELS: Final = 256

#: Of the longer side of the one in a frame; as PNG it has 17 KB at most.
ICON_PIXELS: Final = 64

#: What decoding a picture may take of the memory, for a moment.
MAX_DECODED_BYTES: Final = 200_000_000

#: Of its file; some decoders read it whole.
MAX_BYTES: Final = 32 * 1024 * 1024

#: Of a JPEG: each goes over all of its pixels again. Cameras and programs make ten.
MAX_SCANS: Final = 100

MIME_TYPE: Final = "image/webp"

#: By the MIME type; nothing else is tried, so that no other decoder sees the bytes.
#: Never SVG, which is a program. Behind each the bytes that its decoder takes for a
#: pixel, measured.
_FORMATS: Final = {
    "image/avif": ("AVIF", 10),
    "image/bmp": ("BMP", 4),
    "image/gif": ("GIF", 4),
    "image/jpeg": ("JPEG", 4),
    "image/png": ("PNG", 4),
    "image/webp": ("WEBP", 16),
}

#: A decoded picture is large; one at a time in a process.
_one_at_a_time = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """What is made of a picture, without what else came with it.

    Attributes:
        thumbnail: As WebP, at most 256 × 256.
        icon: As PNG, at most 64 × 64.
    """

    thumbnail: bytes
    icon: bytes


def make_pictures(file: BinaryIO, mime_type: str) -> Pictures | None:
    """Return small pictures of a picture; None for none.

    Args:
        file: Is read from its beginning and left anywhere.
        mime_type: As the bytes tell.
    """
    if mime_type not in _FORMATS:
        return None
    known, pixel_bytes = _FORMATS[mime_type]
    if _is_too_much(file, known):
        return None
    file.seek(0)
    try:
        with _one_at_a_time, Image.open(file, formats=[known]) as image:
            # Before anything is decoded: the size is in the header.
            if image.width * image.height * pixel_bytes > MAX_DECODED_BYTES:
                return None
            return _small(image)
    # Decoders raise whatever they like at bytes that somebody made up.
    except Exception as error:  # noqa: BLE001
        logger.info("no thumbnail of %s: %r", mime_type, error)
        return None


def _is_too_much(file: BinaryIO, known: str) -> bool:
    if file.seek(0, os.SEEK_END) > MAX_BYTES:
        return True
    if known != "JPEG":
        return False
    file.seek(0)
    # Among its pixels this pair of bytes never stands.
    return file.read().count(b"\xff\xda") > MAX_SCANS


def _small(image: Image.Image) -> Pictures:
    # A JPEG can be decoded small; as it is turned, either side may be the longer.
    image.draft("RGB", (2 * THUMBNAIL_PIXELS, 2 * THUMBNAIL_PIXELS))
    image.thumbnail((THUMBNAIL_PIXELS, THUMBNAIL_PIXELS))
    upright = ImageOps.exif_transpose(image)
    shown = upright.convert("RGBA" if upright.has_transparency_data else "RGB")
    # What else came with the picture, such as where it was taken, stays behind.
    shown.info.clear()
    icon = shown.copy()
    icon.thumbnail((ICON_PIXELS, ICON_PIXELS))
    return Pictures(
        thumbnail=_encoded(shown, "WEBP", quality=80),
        icon=_encoded(icon, "PNG", optimize=True),
    )


def _encoded(image: Image.Image, kind: str, **options: int) -> bytes:
    target = io.BytesIO()
    image.save(target, kind, **options)
    return target.getvalue()
