"""A prompt as one text: what its system and its user message say."""

from generator_svc.prompting.writer import WrittenPrompt


def text_of(written: WrittenPrompt) -> str:
    return "\n\n".join(message.content for message in written.messages)
